"""`fedkge train`."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fedkge.api import training as runs
from fedkge.api.opening import shards_of
from fedkge.base.errors import ConfigurationError
from fedkge.cli.attack_run import finish_live, live_attacks
from fedkge.cli.budget import warn
from fedkge.cli.errors import stops_at_once
from fedkge.cli.options import given_options, with_configuration
from fedkge.cli.progress import narrator
from fedkge.cli.shard_table import shard_table
from fedkge.cli.tables import say, stdout
from fedkge.cli.training import JsonOfRounds, Trackers, continue_run, show_end, watched_by
from fedkge.configuration import Configuration, Mark, kebab, read_toml
from fedkge.defences import OPTIONS, parse
from fedkge.experiments.live import LiveAttacks
from fedkge.graph.split import Shards
from fedkge.graph.summary import leaked_counts, unseen_counts
from fedkge.runs.vectors import matches, start_vectors
from fedkge.store.randomness import fresh_seed

EXAMPLE = "Example: fedkge train --data codex-s --model rotate --clients 3 --rounds 20 --out runs/three"


@with_configuration
def train(
    options: Mapping[str, Any],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the same options. Flags take precedence over it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory. Without it, a new one in runs/.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out, if there is one.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out, if there is one.")] = False,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            metavar="NAME",
            help="Attack the federation during training, every 5th round (see fedkge attack). Repeat it for several.",
        ),
    ] = None,
    tracker: Trackers = None,
    as_json: JsonOfRounds = False,
) -> None:
    """Train a model on one graph, or as a federation of clients.

    Every option is also a key of the TOML file for --config. You can stop with Ctrl-C and continue with fedkge resume.
    """
    if resume and overwrite:
        raise ConfigurationError("expected --resume or --overwrite, got both; choose one")
    given = given_options(config, options)
    if attack and given.get("record", "none") == "none":
        given["record"] = "every:5"
    configuration = parse(given)
    live = live_attacks(attack, configuration) if attack else None
    path = out or _new_path(configuration)
    if resume and (path / "config.toml").exists():
        _check_same(path, given)
        threads = configuration.training.threads if "threads" in given else None
        continue_run(path, tracker or (), as_json, threads, live)
    else:
        _train(configuration, path, overwrite, tracker or (), as_json, live)
    if attack and live:
        finish_live(path, attack, live, as_json)


def _train(
    configuration: Configuration,
    path: Path,
    overwrite: bool,
    trackers: Sequence[str],
    as_json: bool,
    live: LiveAttacks | None,
) -> None:
    runs.check(configuration)
    runs.check_free(path, overwrite)
    if configuration.experiment.seed is None:
        configuration = configuration.updated(seed=fresh_seed())
    shards = shards_of(configuration.data.source, configuration)
    _tell_start(configuration, shards)
    warn(configuration)
    if len(shards) > 1 and not as_json:
        console = stdout()
        console.print(shard_table(shards.summary, console.width))
    with narrator() as told, stops_at_once(f"continue with: fedkge resume {path}", told.stop):
        observer = watched_by(told, trackers, configuration, path, as_json, live)
        run = runs.start(configuration, shards.graphs, path, overwrite=overwrite, observer=observer)
    show_end(run, as_json)


def _tell_start(configuration: Configuration, shards: Shards) -> None:
    unseen, known = Counter[str](), Counter[str]()
    for shard in shards:
        unseen.update(unseen_counts(shard))
        known.update(leaked_counts(shard))
    for split, count in known.items():
        if count:
            kept = "they are ranked" if configuration.data.keep_leaked else "they are not ranked"
            say(f"warning: {split}: {count:,} triples are in train too; {kept} (--keep-leaked ranks them)")
    for split, count in unseen.items():
        if count:
            say(f"{split}: {count:,} triples have names that train lacks; they are ranked with untrained rows")
    vectors = start_vectors(configuration, shards.graphs)
    for kind, (used, unknown) in (matches(vectors, shards.graphs) if vectors else {}).items():
        say(f"start vectors: {used:,} {kind} from {configuration.training.init}; {unknown:,} names are not in the data")


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
