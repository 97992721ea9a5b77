"""`fedkge attack`: what could each adversary infer from what it saw in a recorded run?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fedkge.cli.tables import grid, print_json, say, stderr, stdout
from fedkge.errors import ConfigurationError
from fedkge.machine import available_cores
from fedkge.registry import look_up

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fedkge.attacks.experiment import AttackPlan, Outcome, Progress
    from fedkge.federation.run import Run

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

FULL_WIDTH = 125
NARROW = (0, 1, 2, 3, 5, 8)
"""The columns for a narrower terminal."""

DESIGNS = {
    "A": "real triples against uniform random ones (plausibility alone separates them)",
    "B": "real triples against held-out real ones (the strict membership game)",
    "C": "canaries that were inserted against canaries that were not (the paper's wording)",
    "D": "real triples against corruptions of the same types",
}


def attack(
    run: Annotated[Path, typer.Argument(help="Run directory, recorded with --record and, for design C, --canaries.")],
    names: Annotated[
        list[str] | None, typer.Option("--attack", help="Attack by name; repeat for several. Without: all that fit.")
    ] = None,
    targets: Annotated[str, typer.Option(help="Designs of targets, separated by commas.")] = "A,B,C,D",
    every: Annotated[int, typer.Option(min=1, help="Attack every so many rounds, and the last.")] = 5,
    targets_count: Annotated[int, typer.Option(min=2, help="Members, and as many non-members, per design.")] = 500,
    auxiliary: Annotated[int, typer.Option(min=0, help="True triples per relation that the server is given.")] = 20,
    group_size: Annotated[int, typer.Option(min=0, help="CIA: targets attacked at once; 0 means all.")] = 300,
    waiting_rounds: Annotated[int, typer.Option(min=1, help="CIA: rounds between reversal and look.")] = 5,
    shadows: Annotated[int, typer.Option(min=2, help="LiRA: shadow federations to train; kept beside the run.")] = 16,
    base: Annotated[
        str, typer.Option("--lira-base", help="LiRA: the attack whose scores it compares.")
    ] = "upload-difference",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the targets.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON on stdout, one line per attack, design and round.")
    ] = False,
) -> None:
    """Run the attacks of every adversary (server, client, both together) and say how well each does.

    An attack sees only its adversary's part of the transcript. F1 is printed beside what guessing "member" every
    time gives (0.667); a true-positive rate is refused where the non-members are too few to support it.
    """
    from fedkge.attacks.cia import CIA  # noqa: PLC0415 (heavy)
    from fedkge.attacks.experiment import AttackPlan, run_attacks  # noqa: PLC0415
    from fedkge.attacks.shadows import ShadowPlan  # noqa: PLC0415
    from fedkge.runs import open_run  # noqa: PLC0415

    opened = open_run(run)
    plan = AttackPlan(
        attacks=_chosen(opened, names),
        designs=_designs(targets, opened.configuration.canaries == 0),
        every=every,
        count=targets_count,
        auxiliary=auxiliary,
        victim=opened.configuration.victim,
        adversary=opened.configuration.adversary,
        seed=seed,
        threads=_cores(opened),
        cia=CIA(group_size, waiting_rounds),
        shadows=ShadowPlan(base, shadows, _cores(opened)),
    )
    with attack_progress() as progress:
        outcomes = run_attacks(opened, plan, progress)
    if as_json:
        for outcome in outcomes:
            metrics = {key: value for key, value in outcome.metrics.items() if key != "roc"}
            print_json({**outcome_key(outcome), "round": outcome.round, **metrics})
        return
    show_outcomes(opened, plan, outcomes)
    say(f"All rounds and ROC points: {run / 'attacks.json'}")


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The attacks that were named, each once; an unknown name is an error that lists near ones."""
    from fedkge.attacks.experiment import known_attacks  # noqa: PLC0415

    known = {name: name for name in known_attacks()}
    return tuple(look_up(known, name, "attack") for name in dict.fromkeys(names))


def _chosen(opened: Run, names: Sequence[str] | None) -> tuple[str, ...]:
    from fedkge.attacks.experiment import fitting_attacks  # noqa: PLC0415

    return check_names(names) if names else tuple(fitting_attacks(opened))


def _designs(text: str, without_canaries: bool) -> tuple[Any, ...]:
    designs = tuple(dict.fromkeys(part.strip().upper() for part in text.split(",")))
    unknown = [design for design in designs if design not in DESIGNS]
    if unknown:
        raise ConfigurationError(f"--targets: expected some of A,B,C,D, got {text!r}")
    if without_canaries and "C" in designs and len(designs) > 1:
        say("Design C is left out: this run has no canaries (train with --canaries 1000).")
        return tuple(design for design in designs if design != "C")
    return designs


def _cores(opened: Run) -> int:
    return opened.configuration.threads or available_cores()


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
        if not found:  # LiRA works on canaries alone
            continue
        counts = found[0].metrics
        console.print(
            f"Design {design}: {DESIGNS[design]}; {counts['members']:,} + {counts['non_members']:,} targets, "
            f'F1 of "everything is a member": {counts["floor_f1"]:.3f}',
            style="bold",
            markup=False,
        )
        console.print(outcome_table(found, console.width))
    console.print(
        f"Victim {plan.victim}, adversary client {plan.adversary}, round {outcomes[-1].round} of "
        f"{opened.configuration.rounds} unless said otherwise. "
        "F1 cal.: threshold from other triples; F1 best: threshold chosen on the targets, as the paper does.",
        markup=False,
    )


def outcome_table(outcomes: Sequence[Outcome], width: int) -> RenderableType:
    """One row per attack and adversary: the last round, and the best round's F1; fewer columns if narrow."""
    from fedkge.attacks.experiment import best_round, grouped  # noqa: PLC0415

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
