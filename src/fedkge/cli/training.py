"""What `fedkge train` and `fedkge resume` share: who watches a training, and what is shown at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from fedkge.api import training as runs
from fedkge.cli.budget import budget_record, budget_table, warn
from fedkge.cli.errors import stops_at_once
from fedkge.cli.metric_tables import cost_line, metric_rows, metric_table
from fedkge.cli.progress import JsonLines, Narrator, narrator
from fedkge.cli.tables import print_json, print_line, say, stdout
from fedkge.configuration import Configuration
from fedkge.experiments.live import LiveAttacks
from fedkge.federation.observer import Observer, Observers
from fedkge.runs.directory import RunDirectory
from fedkge.runs.run import Run
from fedkge.trackers import make_tracker

JsonOfRounds: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout: one line per evaluated round, then the result.")
]
Trackers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tracker", metavar="NAME", help="Also report to tensorboard or mlflow. Repeat it for both."),
]


def continue_run(
    path: Path, trackers: Sequence[str], as_json: bool, threads: int | None = None, live: LiveAttacks | None = None
) -> None:
    """Resume the run in a directory and show its end."""
    configuration, _ = RunDirectory(path).read_configuration()
    warn(configuration)
    with narrator() as told, stops_at_once(f"continue with: fedkge resume {path}", told.stop):
        observer = watched_by(told, trackers, configuration, path, as_json, live)
        run = runs.resume(path, observer=observer, threads=threads)
    show_end(run, as_json)


def watched_by(
    told: Narrator,
    trackers: Sequence[str],
    configuration: Configuration,
    path: Path,
    as_json: bool,
    live: LiveAttacks | None = None,
) -> Observer:
    """The bar or the log, the trackers, attacks during training, and lines of JSON."""
    observers: list[Observer] = [told, *(make_tracker(name, configuration, path) for name in trackers)]
    if live:
        live.tell = told.note
        observers.append(live)
    return Observers([*observers, JsonLines()] if as_json else observers)


def show_end(run: Run, as_json: bool) -> None:
    """The test metrics, the budget and the run directory; also the price of an attack within the federation."""
    if run.configuration.experiment.inline_attack != "none":
        _show_price(run, as_json)
    record = run.metrics[-1] if run.metrics and run.metrics[-1]["split"] == "test" else None
    budget = budget_record(run)
    if as_json:
        privacy = {"privacy": budget} if budget else {}
        print_json({"run": str(run.directory), **(record or {"split": None}), **privacy})
        return
    console = stdout()
    if record is None:
        console.print("There are no test triples to rank.")
    else:
        title = f"Test triples, filtered ranking on both sides, after round {record['round']} of {rounds_of(run)}"
        console.print(metric_table(metric_rows(record, label_of(run)), title))
        if cost := cost_line(run, record):
            console.print(cost)
    if budget:
        console.print(budget_table(budget))
    for notice in sorted({shard.notice for shard in run.shards if shard.notice}):
        console.print(notice)
    print_line(f"Run: {run.directory}")
    say(f"Next: fedkge predict {run.directory} --head NAME --relation NAME, or fedkge export {run.directory}")


def _show_price(run: Run, as_json: bool) -> None:
    """What an attack within the federation costs everybody: the honest twin is trained too, and both are compared."""
    say("Training the same federation without the attack, for comparison:")
    with narrator() as told:
        price = runs.price_of_attack(run, observer=told)
    if as_json:
        print_json({"inline_attack": run.configuration.experiment.inline_attack, **price})
        return
    stdout().print(
        f"In-line attack: the test MRR (both sides) is {price['attacked']:.4f} with the attack and "
        f"{price['honest']:.4f} without it (difference {price['attacked'] - price['honest']:+.4f})."
    )


def rounds_of(run: Run) -> str:
    """How many rounds there were to be, and why another than the last may have been kept."""
    kept = len(run.metrics) > 1 and run.metrics[-1]["round"] != run.configuration.training.rounds
    return f"{run.configuration.training.rounds}{' (the best on valid)' if kept else ''}"


def label_of(run: Run) -> str:
    """The model as tables name it."""
    name = run.embedding().scorer.name
    return f"{name}, {run.configuration.federation.strategy}" if len(run.shards) > 1 else name
