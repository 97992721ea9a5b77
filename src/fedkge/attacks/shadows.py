"""Shadow federations: the same clients and canaries with fresh coins, trained in parallel and kept.

The adversary of this experiment knows all triples but the canaries' coins. A shadow run is cached beside the attacked
run, by the base attack, the configuration, the auxiliary triples and its number, so more shadows only cost the new.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from fedkge.attacks import make_attack
from fedkge.attacks.canaries import with_triples
from fedkge.attacks.lira import Coins, Scores, Shadows
from fedkge.attacks.recorded import recorded_view, shard_of
from fedkge.attacks.targets import Targets
from fedkge.federation.run import Run, RunDirectory, provenance_of
from fedkge.federation.storage import load_tensors, make_folder, raw_bytes, save_tensors
from fedkge.federation.training import Federation
from fedkge.graph import Graph, Triples
from fedkge.vectors import start_vectors

FOLDER = "shadows"
STREAM = 8_888
"""Keeps the shadows' random streams apart from the parties' streams of the same seed."""


@dataclass(frozen=True, slots=True)
class ShadowPlan:
    """Which attack scores the canaries, how many shadows, and how many at once."""

    base: str = "upload-difference"
    count: int = 16
    processes: int = 1


def shadow_scores(
    run: Run,
    canaries: Targets,
    auxiliary: Triples,
    plan: ShadowPlan,
    advance: Callable[[int, int], None] = lambda *_: None,
) -> dict[int, Shadows]:
    """By recorded round: the base attack's scores of all canaries in every shadow run."""
    assert run.directory is not None  # noqa: S101 - recorded runs have one
    folder = run.directory / FOLDER
    make_folder(folder)
    key = f"{plan.base}-{run.configuration.digest}-{zlib.crc32(raw_bytes(auxiliary)):08x}"
    paths = [folder / f"{key}-{number:03d}.safetensors" for number in range(plan.count)]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    bare = without_canaries(run, canaries)
    advance(plan.count - len(missing), plan.count)
    with ProcessPoolExecutor(max_workers=plan.processes, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_cast, bare, canaries, auxiliary, plan.base, number, paths[number]) for number in missing]
        for done, job in enumerate(as_completed(jobs), start=1):
            job.result()
            advance(plan.count - len(missing) + done, plan.count)
    tables = [load_tensors(path)[0] for path in paths]
    rounds = sorted(int(name) for name in set.intersection(*map(set, tables)) - {"coins"})
    coins = np.stack([table["coins"].astype(np.bool_) for table in tables])
    return {number: Shadows(np.stack([table[str(number)] for table in tables]), coins) for number in rounds}


def without_canaries(run: Run, canaries: Targets) -> Run:
    """The run with the canaries taken out of the victim's data again, and its tables left behind."""
    victim = run.configuration.victim
    shard = shard_of(run, victim)
    shards = list(run.shards)
    shards[run.clients.index(victim)] = replace(shard, train=shard.train[: len(shard.train) - len(canaries.inserted)])
    return replace(run, shards=tuple(shards), tensors={}, metrics=())


def _cast(bare: Run, canaries: Targets, auxiliary: Triples, base: str, number: int, path: Path) -> None:
    """Train one shadow on one core and keep the base attack's scores of every canary, round by round."""
    seed = bare.configuration.seed or 0
    coins = shadow_coins(seed, number, len(canaries.everything))
    training = int(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM, number, 1))).integers(2**63))
    options = bare.configuration.model_copy(update={"seed": training, "threads": 1, "canaries": 0, "evaluate_every": 0})
    shards = _with_coins(bare, canaries.everything[coins])
    folder = Path(mkdtemp(dir=path.parent))
    try:
        directory = RunDirectory(folder / "run")
        directory.create(options, provenance_of(shards, options, directory.data_key()))
        shadow = Federation(shards, options, directory, start=start_vectors(options, shards)).run()
        save_tensors(path, {**_scores(shadow, canaries, auxiliary, base), "coins": coins.astype(np.int32)}, {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    place = bare.clients.index(bare.configuration.victim)
    shards[place] = with_triples(shards[place], chosen, bare.entities, bare.relations)
    return tuple(shards)


def _scores(shadow: Run, canaries: Targets, auxiliary: Triples, base: str) -> dict[str, Scores]:
    attack = make_attack(base)
    options = shadow.configuration
    view = recorded_view(shadow, attack.needs.adversary[0], options.victim, options.adversary, auxiliary)
    return {
        str(number): np.asarray(attack.score(view.until(number), canaries.everything), dtype=np.float64)
        for number in view.rounds
    }
