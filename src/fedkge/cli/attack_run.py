"""Run attacks with a bar on stderr: on a recorded run, or on a federation while it trains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fedkge.api.attacks import check_names, check_training, default_plan
from fedkge.api.opening import opened
from fedkge.cli.attack_tables import outcome_key, show_outcomes
from fedkge.cli.tables import print_json, say, stderr
from fedkge.configuration import Configuration
from fedkge.experiments.experiment import Memory, Progress, run_attacks
from fedkge.experiments.live import LiveAttacks
from fedkge.experiments.plan import AttackPlan
from fedkge.experiments.plot import plot_outcomes
from fedkge.runs.run import Run


def perform(run: Run, plan: AttackPlan, as_json: bool, plot: Path | None = None, memory: Memory | None = None) -> None:
    """Run the attacks of a plan, show and draw what they found."""
    with attack_progress() as progress:
        outcomes = run_attacks(run, plan, progress, memory)
    if plot is not None:
        plot_outcomes(outcomes, plot)
        say(f"Picture: {plot}")
    if as_json:
        for outcome in outcomes:
            metrics = {key: value for key, value in outcome.metrics.items() if key != "roc"}
            print_json({**outcome_key(outcome), "round": outcome.round, **metrics})
        return
    show_outcomes(run, plan, outcomes)
    say(f"All rounds and ROC points: {run.directory}/attacks.json")


def live_attacks(names: Sequence[str], configuration: Configuration) -> LiveAttacks:
    """What attacks a federation as it goes, and says so on stderr; attacks that cannot work there are refused."""
    chosen = check_names(names, configuration.model.name)
    check_training(chosen, configuration)
    return LiveAttacks(lambda run: default_plan(run, chosen), say)


def finish_live(path: Path, names: Sequence[str], live: LiveAttacks, as_json: bool) -> None:
    """Run what is left of the attacks on the finished run, and show all that they found."""
    whole = opened(path)
    perform(whole, default_plan(whole, names), as_json, memory=live.memory)


@contextmanager
def attack_progress() -> Iterator[Progress]:
    """A bar on stderr with what is running and the time left."""
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
