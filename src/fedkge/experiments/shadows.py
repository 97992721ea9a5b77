"""Shadow federations: the same clients and canaries with fresh coins, trained in parallel and kept.

The adversary of this experiment knows all triples but the canaries' coins, and the configuration but its seeds: a
shadow starts, samples and draws noise on its own. What is read off a shadow is cached beside the attacked run, by what
is read, the configuration and its number, so more shadows only cost the new.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks import make_attack
from fedkge.attacks.lira import Coins, Shadows
from fedkge.configuration import Configuration
from fedkge.experiments.recorded_views import recorded_view, shard_of
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import with_triples
from fedkge.federation.training import Federation
from fedkge.graph import Graph, Triples
from fedkge.runs.directory import RunDirectory, provenance_of
from fedkge.runs.run import Run
from fedkge.runs.vectors import start_vectors
from fedkge.store.durable_files import load_tensors, make_folder, raw_bytes, save_tensors

FOLDER = "shadows"
STREAM = 8_888
"""Keeps the shadows' random streams apart from the parties' streams of the same seed."""


@dataclass(frozen=True, slots=True)
class ShadowPlan:
    """Which attack scores the canaries, how many shadows, and how many at once."""

    base: str = "upload-difference"
    count: int = 16
    processes: int = 1


Reader: TypeAlias = Callable[[Run, Targets], Mapping[str, NDArray[np.float64]]]
"""What is kept of a shadow: named arrays with one row per canary. It must survive pickling."""


def shadow_scores(
    run: Run,
    canaries: Targets,
    auxiliary: Triples,
    plan: ShadowPlan,
    advance: Callable[[int, int], None] = lambda *_: None,
) -> dict[int, Shadows]:
    """By recorded round: the base attack's scores of all canaries in every shadow run."""
    key = f"{plan.base}-{run.configuration.digest}-{zlib.crc32(raw_bytes(auxiliary)):08x}"
    read = partial(_scores, auxiliary=auxiliary, base=plan.base)
    found, coins = cast_shadows(run, canaries, key, read, plan, advance)
    return {int(number): Shadows(scores, coins) for number, scores in sorted(found.items(), key=_round)}


def cast_shadows(
    run: Run,
    canaries: Targets,
    key: str,
    read: Reader,
    plan: ShadowPlan,
    advance: Callable[[int, int], None] = lambda *_: None,
) -> tuple[dict[str, NDArray[np.float64]], Coins]:
    """What `read` finds in every shadow run (arrays over shadows first), and their coins; kept under `key`."""
    assert run.directory is not None  # noqa: S101 - recorded runs have one
    folder = run.directory / FOLDER
    make_folder(folder)
    paths = [folder / f"{key}-{number:03d}.safetensors" for number in range(plan.count)]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    bare = without_canaries(run, canaries)
    advance(plan.count - len(missing), plan.count)
    with ProcessPoolExecutor(max_workers=plan.processes, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_cast, bare, canaries, read, number, paths[number]) for number in missing]
        for done, job in enumerate(as_completed(jobs), start=1):
            job.result()
            advance(plan.count - len(missing) + done, plan.count)
    tables = [load_tensors(path)[0] for path in paths]
    names = sorted(set.intersection(*map(set, tables)) - {"coins"})
    coins = np.stack([table["coins"].astype(np.bool_) for table in tables])
    return {name: np.stack([table[name] for table in tables]) for name in names}, coins


def _round(found: tuple[str, object]) -> int:
    return int(found[0])


def without_canaries(run: Run, canaries: Targets) -> Run:
    """The run with the canaries taken out of the victim's data again, without its tables and its ledger."""
    victim = run.configuration.experiment.victim
    shard = shard_of(run, victim)
    shards = list(run.shards)
    shards[run.clients.index(victim)] = replace(shard, train=shard.train[: len(shard.train) - len(canaries.inserted)])
    return replace(run, shards=tuple(shards), tensors={}, metrics=(), ledger=None)


def _cast(bare: Run, canaries: Targets, read: Reader, number: int, path: Path) -> None:
    """Train one shadow on one core and keep what is read off it."""
    coins = shadow_coins(bare.configuration.experiment.seed or 0, number, len(canaries.everything))
    options, shards = shadow_options(bare.configuration, number), _with_coins(bare, canaries.everything[coins])
    folder = Path(mkdtemp(dir=path.parent))
    try:
        directory = RunDirectory(folder / "run")
        directory.create(options, provenance_of(shards, options, directory.data_key()))
        shadow = Federation(shards, options, directory, start=start_vectors(options, shards)).run()
        save_tensors(path, {**read(shadow, canaries), "coins": coins.astype(np.int32)}, {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shadow_options(options: Configuration, number: int) -> Configuration:
    """The attacked run's configuration with seeds of the shadow's own: an adversary does not know the victim's noise.

    >>> options = Configuration.of(seed=1, noise_seed=2)
    >>> made = options, shadow_options(options, 0), shadow_options(options, 1)
    >>> len({one.privacy.noise_seed for one in made} | {one.experiment.seed for one in made})
    6
    """
    random = np.random.default_rng(np.random.SeedSequence(options.experiment.seed or 0, spawn_key=(STREAM, number, 1)))
    training, noise = (int(random.integers(2**63)) for _ in range(2))
    noise_seed = None if options.privacy.noise_seed is None else noise
    return options.updated(seed=training, noise_seed=noise_seed, threads=1, canaries=0, evaluate_every=0)


def shadow_coins(seed: int, number: int, canaries: int) -> Coins:
    """Which canaries shadow `number` holds: fair coins; an odd one holds what the even one before it does not, so
    that every canary is in exactly half of an even number of shadows.

    >>> bool((shadow_coins(1, 0, 9) ^ shadow_coins(1, 1, 9)).all())
    True
    """
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM, number // 2, 0)))
    coins: Coins = random.random(canaries) < 0.5
    return ~coins if number % 2 else coins


def _with_coins(bare: Run, chosen: Triples) -> tuple[Graph, ...]:
    shards = list(bare.shards)
    place = bare.clients.index(bare.configuration.experiment.victim)
    shards[place] = with_triples(shards[place], chosen, bare.entities, bare.relations)
    return tuple(shards)


def _scores(shadow: Run, canaries: Targets, auxiliary: Triples, base: str) -> dict[str, NDArray[np.float64]]:
    attack = make_attack(base)
    options = shadow.configuration
    view = recorded_view(
        shadow, attack.needs.adversary[0], options.experiment.victim, options.experiment.adversary, auxiliary
    )
    return {
        str(number): np.asarray(attack.score(view.until(number), canaries.everything), dtype=np.float64)
        for number in view.rounds
    }
