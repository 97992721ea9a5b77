"""`fedkge attack`: what could each adversary infer from what it saw in a recorded run?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fedkge.base.errors import ConfigurationError
from fedkge.cli.tables import grid, print_json, say, stderr, stdout

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fedkge.configuration import Configuration
    from fedkge.experiments.experiment import AttackPlan, Memory, Outcome, Progress
    from fedkge.experiments.live import LiveAttacks
    from fedkge.runs.run import Run

EXAMPLE = (
    "Example: fedkge train --data demo --clients 3 --canaries 600 --record every:5 --out runs/open, "
    "then: fedkge attack runs/open --targets C --targets-count 300"
)

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

ALL = "A,B,C,D"
"""Without a choice; R stands in for C where the canaries are real triples."""
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


def attack(
    run: Annotated[Path, typer.Argument(help="Run directory, recorded with --record and, for design C, --canaries.")],
    names: Annotated[
        list[str] | None, typer.Option("--attack", help="Attack by name; repeat for several. Without: all that fit.")
    ] = None,
    targets: Annotated[str, typer.Option(help="Designs of targets (A,B,C,D,R), separated by commas.")] = ALL,
    every: Annotated[int, typer.Option(min=1, help="Attack every so many rounds, and the last.")] = 5,
    targets_count: Annotated[
        int | None, typer.Option(min=2, help="Members, and as many non-members, per design; default: up to 500.")
    ] = None,
    auxiliary: Annotated[int, typer.Option(min=0, help="True triples per relation that the server is given.")] = 20,
    group_size: Annotated[int, typer.Option(min=0, help="CIA: targets attacked at once; 0 means all.")] = 600,
    waiting_rounds: Annotated[int, typer.Option(min=1, help="CIA: rounds between reversal and look.")] = 5,
    shadows: Annotated[
        int | None,
        typer.Option(min=2, help="Shadow federations to train, kept beside the run; default: 2 (shadow), 16 (LiRA)."),
    ] = None,
    base: Annotated[
        str, typer.Option("--lira-base", help="LiRA: the attack whose scores it compares.")
    ] = "upload-difference",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the targets.")] = 0,
    victim: Annotated[str | None, typer.Option(help="The attacked client; default: the run's.")] = None,
    adversary: Annotated[str | None, typer.Option(help="The attacking client; default: the run's.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw ROC curves (log-log) and F1 and AUC by round: .svg, .pdf or .png.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON on stdout, one line per attack, design and round.")
    ] = False,
) -> None:
    """Run the attacks of every adversary (server, client, both together) and say how well each does.

    An attack sees only its adversary's part of the transcript. F1 is printed beside what guessing "member" every
    time gives (0.667); a true-positive rate is refused where the non-members are too few to support it.
    """
    from fedkge.api.attacks import attack_plan  # noqa: PLC0415 (heavy)
    from fedkge.api.opening import opened  # noqa: PLC0415
    from fedkge.experiments.plot import FORMATS  # noqa: PLC0415

    if plot is not None and plot.suffix not in FORMATS:
        raise ConfigurationError(f"--plot: expected a name that ends with {', '.join(FORMATS)}, got {plot}")
    whole = opened(run)
    plan, notes = attack_plan(
        whole,
        names or (),
        targets=targets,
        every=every,
        targets_count=targets_count,
        auxiliary=auxiliary,
        group_size=group_size,
        waiting_rounds=waiting_rounds,
        shadows=shadows,
        lira_base=base,
        seed=seed,
        victim=victim,
        adversary=adversary,
    )
    for note in notes:
        say(note)
    perform(whole, plan, as_json, plot)


def perform(
    opened: Run, plan: AttackPlan, as_json: bool, plot: Path | None = None, memory: Memory | None = None
) -> None:
    """Run the attacks of a plan, show and draw what they found."""
    from fedkge.experiments.experiment import run_attacks  # noqa: PLC0415 (heavy)
    from fedkge.experiments.plot import plot_outcomes  # noqa: PLC0415

    with attack_progress() as progress:
        outcomes = run_attacks(opened, plan, progress, memory)
    if plot is not None:
        plot_outcomes(outcomes, plot)
        say(f"Picture: {plot}")
    if as_json:
        for outcome in outcomes:
            metrics = {key: value for key, value in outcome.metrics.items() if key != "roc"}
            print_json({**outcome_key(outcome), "round": outcome.round, **metrics})
        return
    show_outcomes(opened, plan, outcomes)
    say(f"All rounds and ROC points: {opened.directory}/attacks.json")


def live_attacks(names: Sequence[str], configuration: Configuration) -> LiveAttacks:
    """What attacks a federation as it goes, and says so on stderr; attacks that cannot work there are refused."""
    from fedkge.api.attacks import check_names, check_training, default_plan  # noqa: PLC0415 (heavy)
    from fedkge.experiments.live import LiveAttacks  # noqa: PLC0415

    chosen = check_names(names, configuration.model.name)
    check_training(chosen, configuration)
    return LiveAttacks(lambda run: default_plan(run, chosen), say)


def finish_live(path: Path, names: Sequence[str], live: LiveAttacks, as_json: bool) -> None:
    """Run what is left of the attacks on the finished run, and show all that they found."""
    from fedkge.api.attacks import default_plan  # noqa: PLC0415 (heavy)
    from fedkge.api.opening import opened  # noqa: PLC0415

    whole = opened(path)
    perform(whole, default_plan(whole, names), as_json, memory=live.memory)


@contextmanager
def attack_progress() -> Iterator[Progress]:
    """A bar on stderr with what is running and the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=stderr(), transient=True, disable=not stderr().is_terminal) as bar:
        task = bar.add_task("attacking", total=None)

        def progress(label: str, done: int, total: int) -> None:
            bar.update(task, description=label, completed=done, total=total)

        yield progress


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
            markup=False,
        )
        console.print(outcome_table(found, console.width))
    _show_more(opened, outcomes)
    console.print(
        f"Victim {plan.victim}, adversary client {plan.adversary}, round {outcomes[-1].round} of "
        f"{opened.configuration.training.rounds} unless said otherwise. "
        "F1 cal.: threshold from other triples; F1 best: threshold chosen on the targets, as the paper does.",
        markup=False,
    )


def _show_more(opened: Run, outcomes: Sequence[Outcome]) -> None:
    """SI's two questions apart, and how many rows of the victim's uploads changed."""
    from fedkge.experiments.outcomes import RESULTS, link_and_triple, read_rows_changed  # noqa: PLC0415 (heavy)

    console = stdout()
    last = {found["design"]: found for found in link_and_triple(outcomes)}
    parts = [
        f"design {design}: link {found['link_auc']['value']:.3f}, triple {found['triple_auc']['value']:.3f}"
        for design, found in last.items()
    ]
    if parts:
        console.print(f"SI, AUC of link (any relation) and triple (this relation): {'; '.join(parts)}.", markup=False)
    changed = read_rows_changed(opened.directory / RESULTS) if opened.directory else []
    if changed:
        counts = ", ".join(f"{one.changed:,} of {one.known:,} (round {one.round})" for one in changed)
        console.print(f"Rows of the victim's upload that differ from what it was sent: {counts}.", markup=False)


def outcome_table(outcomes: Sequence[Outcome], width: int) -> RenderableType:
    """One row per attack and adversary: the last round, and the best round's F1; fewer columns if narrow."""
    from fedkge.experiments.experiment import best_round, grouped  # noqa: PLC0415

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
