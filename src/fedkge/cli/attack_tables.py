"""What attacks found, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from rich.console import RenderableType

from fedkge.cli.tables import grid, stdout
from fedkge.experiments.outcomes import RESULTS, Outcome, best_round, grouped, link_and_triple, read_rows_changed
from fedkge.experiments.plan import AttackPlan
from fedkge.runs.run import Run

HEADER = (
    "attack",
    "adversary",
    "AUC",
    "95 % interval",
    "TPR@10%",
    "TPR@1%",
    "TPR@0.1%",
    "F1 cal.",
    "F1 best",
    "best round's F1",
)

FULL_WIDTH = 125
NARROW = (0, 1, 2, 3, 5, 8)
"""The columns for a narrower terminal."""

DESIGNS = {
    "A": "real triples against uniform random ones (plausibility alone separates them)",
    "B": "real triples against held-out real ones (the strict membership game)",
    "C": "canaries that were inserted against canaries that were not (the paper's wording)",
    "D": "real triples against corruptions of the same types",
    "R": "real triples that a coin left in against real triples that a coin took out (only the coin differs)",
}


def outcome_key(outcome: Outcome) -> dict[str, str]:
    """What names a row of the table."""
    return {"attack": outcome.attack, "adversary": outcome.adversary, "design": outcome.design}


def show_outcomes(opened: Run, plan: AttackPlan, outcomes: Sequence[Outcome]) -> None:
    """One table per design: the last round, which a deployed model exposes, and the best, which the paper reports."""
    console = stdout()
    for design in plan.designs:
        found = [outcome for outcome in outcomes if outcome.design == design]
        if not found:  # LiRA and shadow work on canaries alone
            continue
        counts = found[0].metrics
        console.print(
            f"Design {design}: {DESIGNS[design]}; {counts['members']:,} + {counts['non_members']:,} targets, "
            f'F1 of "everything is a member": {counts["floor_f1"]:.3f}',
            style="bold",
        )
        console.print(outcome_table(found, console.width))
    _show_more(opened, outcomes)
    console.print(
        f"The victim is {plan.victim}, the adversary client is {plan.adversary}. The numbers are for round "
        f"{outcomes[-1].round} of {opened.configuration.training.rounds} unless the table says otherwise. F1 cal. "
        "takes its threshold from other triples. F1 best takes the best threshold on the targets, as the paper does.",
    )


def _show_more(opened: Run, outcomes: Sequence[Outcome]) -> None:
    """SI's two questions apart, and how many rows of the victim's uploads changed."""
    console = stdout()
    last = {found["design"]: found for found in link_and_triple(outcomes)}
    parts = [
        f"design {design}: link {found['link_auc']['value']:.3f}, triple {found['triple_auc']['value']:.3f}"
        for design, found in last.items()
    ]
    if parts:
        console.print(f"SI, AUC of link (any relation) and triple (this relation): {'; '.join(parts)}.")
    changed = read_rows_changed(opened.directory / RESULTS) if opened.directory else []
    if changed:
        counts = ", ".join(f"{one.changed:,} of {one.known:,} (round {one.round})" for one in changed)
        console.print(f"Rows of the victim's upload that differ from what it was sent: {counts}.")


def outcome_table(outcomes: Sequence[Outcome], width: int) -> RenderableType:
    """One row per attack and adversary: the last round, and the best round's F1; fewer columns if narrow."""
    rows = [
        (name, adversary, *_cells(group[-1].metrics), _best(best_round(group)))
        for (name, adversary, _), group in grouped(outcomes).items()
    ]
    kept = range(len(HEADER)) if width >= FULL_WIDTH else NARROW
    return grid("", [HEADER[i] for i in kept], [[row[i] for i in kept] for row in rows], words=(0, 1))


def _cells(metrics: Any) -> tuple[str, ...]:
    auc = metrics["auc"]
    rates = [rate["value"] for rate in metrics["tpr"]]
    calibrated = metrics["calibrated_f1"]
    return (
        f"{auc['value']:.3f}",
        f"{auc['low']:.3f}-{auc['high']:.3f}",
        *("too few" if rate is None else f"{rate:.3f}" for rate in cast(list[float | None], rates)),
        "-" if calibrated is None else f"{calibrated['value']:.3f}",
        f"{metrics['best_f1']['value']:.3f}",
    )


def _best(outcome: Outcome) -> str:
    return f"{outcome.metrics['best_f1']['value']:.3f} (round {outcome.round})"
