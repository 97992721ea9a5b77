"""`fedkge train` and `fedkge resume`."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.errors import ConfigurationError
from fedkge.cli.attack import check_names, check_training, finish_live, live_attacks
from fedkge.cli.budget import budget_record, budget_table, warn
from fedkge.cli.errors import stops_at_once
from fedkge.cli.options import normalised, with_configuration
from fedkge.cli.progress import JsonLines, Narrator, narrator
from fedkge.cli.tables import cost_line, metric_rows, metric_table, print_json, say, shard_table, stdout
from fedkge.configuration import Configuration, Mark, kebab, read_toml
from fedkge.defences import OPTIONS, parse

if TYPE_CHECKING:
    from fedkge.experiments.live import LiveAttacks
    from fedkge.federation.observer import Observer
    from fedkge.graph.split import Shards
    from fedkge.runs.run import Run

TRAIN_EXAMPLE = "Example: fedkge train --data codex-s --model rotate --clients 3 --rounds 20 --out runs/three"
RESUME_EXAMPLE = "Example: fedkge resume runs/three"

Json = Annotated[
    bool, typer.Option("--json", help="Lines of JSON on stdout: one per evaluated round, then the result.")
]
Tracker = Annotated[
    list[str] | None,
    typer.Option("--tracker", metavar="NAME", help="Also tell tensorboard or mlflow; may be repeated."),
]


@with_configuration
def train(
    options: Mapping[str, Any],
    config: Annotated[Path | None, typer.Option(help="TOML file with the same options; flags win over it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; default: a new one in runs/.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Remove the run that is already there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run that is already there.")] = False,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            "--attack", metavar="NAME", help="Attack every 5th round as it ends (see fedkge attack); may be repeated."
        ),
    ] = None,
    tracker: Tracker = None,
    as_json: Json = False,
) -> None:
    """Train a model, alone or as a federation; one graph is a federation of one.

    Every option is also a key of a TOML file for --config. Interrupt with Ctrl-C and go on with `fedkge resume`.
    """
    if resume and overwrite:
        raise ConfigurationError("--resume and --overwrite exclude each other: choose one")
    given = {**normalised(read_toml(config) if config else {}), **options}
    if attack and given.get("record", "none") == "none":
        given["record"] = "every:5"
    configuration = parse(given)
    live = live_attacks(check_names(attack, configuration.model.name)) if attack else None
    check_training(attack or (), configuration)
    path = out or _new_path(configuration)
    if resume and (path / "config.toml").exists():
        _check_same(path, given)
        _resume(path, tracker or [], as_json, configuration.training.threads if "threads" in given else None, live)
    else:
        _train(configuration, path, overwrite, tracker or [], as_json, live)
    if attack and live:
        finish_live(path, attack, live, as_json)


def resume(
    run: Annotated[Path, typer.Argument(help="Run directory.")], tracker: Tracker = None, as_json: Json = False
) -> None:
    """Continue a run that was interrupted; the result is the same, byte for byte, as without the interruption."""
    _resume(run, tracker or [], as_json)


def _train(
    configuration: Configuration,
    path: Path,
    overwrite: bool,
    trackers: list[str],
    as_json: bool,
    live: LiveAttacks | None = None,
) -> None:
    from fedkge.api import training as runs  # noqa: PLC0415 (heavy: the compiled kernels)
    from fedkge.store.randomness import fresh_seed  # noqa: PLC0415

    runs.check(configuration)
    runs.check_free(path, overwrite)
    if configuration.experiment.seed is None:
        configuration = configuration.updated(seed=fresh_seed())
    shards = runs.shards_of(configuration.data.source, configuration)
    _tell_start(configuration, shards)
    warn(configuration)
    if len(shards) > 1 and not as_json:
        console = stdout()
        console.print(shard_table(shards.summary, console.width))
    with narrator() as told, stops_at_once(f"continue with: fedkge resume {path}", told.stop):
        observer = _observers(told, trackers, configuration, path, as_json, live)
        run = runs.start(configuration, shards.graphs, path, overwrite=overwrite, observer=observer)
    _show_price(run, as_json)
    _show(run, as_json)


def _tell_start(configuration: Configuration, shards: Shards) -> None:
    from fedkge.graph.summary import leaked_counts, unseen_counts  # noqa: PLC0415 (heavy)
    from fedkge.runs.vectors import matches, start_vectors  # noqa: PLC0415 (heavy)

    unseen, known = Counter[str](), Counter[str]()
    for shard in shards:
        unseen.update(unseen_counts(shard))
        known.update(leaked_counts(shard))
    for split, count in known.items():
        if count:
            kept = (
                "they are ranked, as you asked" if configuration.data.keep_leaked else "they are left out of the score"
            )
            say(f"warning: {split}: {count:,} triples are in train too; {kept} (--keep-leaked ranks them)")
    for split, count in unseen.items():
        if count:
            say(f"{split}: {count:,} triples have names that train lacks; they are ranked, by rows that nothing taught")
    vectors = start_vectors(configuration, shards.graphs)
    for kind, (used, unknown) in (matches(vectors, shards.graphs) if vectors else {}).items():
        say(f"start vectors: {used:,} {kind} from {configuration.training.init}; {unknown:,} names are not in the data")


def _resume(
    path: Path, trackers: list[str], as_json: bool, threads: int | None = None, live: LiveAttacks | None = None
) -> None:
    from fedkge.api import training as runs  # noqa: PLC0415 (heavy)
    from fedkge.runs.run import RunDirectory  # noqa: PLC0415

    configuration, _ = RunDirectory(path).read_configuration()
    warn(configuration)
    with narrator() as told, stops_at_once(f"continue with: fedkge resume {path}", told.stop):
        observer = _observers(told, trackers, configuration, path, as_json, live)
        run = runs.resume(path, observer=observer, threads=threads)
    _show_price(run, as_json)
    _show(run, as_json)


def _show_price(run: Run, as_json: bool) -> None:
    """What an attack within the federation costs everybody: the honest twin is trained too, and both are compared."""
    from fedkge.api.training import price_of_attack  # noqa: PLC0415 (heavy)

    if run.configuration.experiment.inline_attack == "none":
        return
    say("The same federation without the attack, for comparison:")
    with narrator() as told:
        price = price_of_attack(run, observer=told)
    if as_json:
        print_json({"inline_attack": run.configuration.experiment.inline_attack, **price})
        return
    stdout().print(
        f"In-line attack: test MRR, both sides: {price['attacked']:.4f} with it, {price['honest']:.4f} without, "
        f"difference {price['attacked'] - price['honest']:+.4f}."
    )


def _observers(
    told: Narrator,
    names: list[str],
    configuration: Configuration,
    path: Path,
    as_json: bool,
    live: LiveAttacks | None = None,
) -> Observer:
    from fedkge.federation.observer import Observers  # noqa: PLC0415
    from fedkge.trackers import make_tracker  # noqa: PLC0415

    observers: list[Observer] = [told, *(make_tracker(name, configuration, path) for name in names)]
    if live:
        live.tell = told.note
        observers.append(live)
    return Observers([*observers, JsonLines()] if as_json else observers)


def _show(run: Run, as_json: bool) -> None:
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
            console.print(cost, markup=False)
    if budget:
        console.print(budget_table(budget))
    for notice in sorted({shard.notice for shard in run.shards if shard.notice}):
        console.print(notice, markup=False)
    console.print(f"Run: {run.directory}", markup=False, soft_wrap=True)
    say(f"Next: fedkge predict {run.directory} --head NAME --relation NAME, or fedkge export {run.directory}")


def rounds_of(run: Run) -> str:
    """How many rounds there were to be, and why another than the last may have been kept."""
    kept = len(run.metrics) > 1 and run.metrics[-1]["round"] != run.configuration.training.rounds
    return f"{run.configuration.training.rounds}{' (the best on valid)' if kept else ''}"


def label_of(run: Run) -> str:
    """The model as tables name it."""
    name = run.embedding().scorer.name
    return f"{name}, {run.configuration.federation.strategy}" if len(run.shards) > 1 else name


def _new_path(configuration: Configuration) -> Path:
    data = re.sub(r"[^\w.-]+", "-", Path(configuration.data.source).name).strip("-.") or "data"
    return Path("runs", f"{data}-{configuration.model.name}-{time.strftime('%Y%m%d-%H%M%S')}")


def _check_same(path: Path, given: Mapping[str, Any]) -> None:
    saved, asked = Configuration.of(**read_toml(path / "config.toml")), parse(given)
    for name, value in asked.as_options().items():
        before = saved.as_options().get(name)
        if kebab(name) in given and not OPTIONS[name].has(Mark.NO_EFFECT) and value != before:
            raise ConfigurationError(
                f"{path}: the run was started with {kebab(name)} {before!r}, got {value!r}; "
                "leave the option out to continue, or choose another --out"
            )
