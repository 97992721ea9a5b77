"""Canaries: random triples that nobody holds, some of which go into the victim's training data; or real triples of
the victim, some of which are taken out of it (`canary_source` real, `fedkge.experiments.targets.real`).

half         exactly half of them, by the run's seed: the paper's experiment (design C).
independent  one fair coin each, from the operating system: what an audit's proof needs. Nothing derives these coins
             again; the auditor's file beside the run is the only place that has them.
seeded       one fair coin each, from the run's seed: repeatable, and therefore known to whoever knows the seed.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration
from fedkge.experiments.targets import Bits, Membership, Pool, Targets, draw_canaries, pool_of
from fedkge.experiments.targets.files import read_targets, write_targets
from fedkge.experiments.targets.real import draw_real, without_triples
from fedkge.graph import HEAD, RELATION, TAIL, Graph, Triples, Vocabulary
from fedkge.graph.shards import client_names

CANARIES = "canaries.jsonl"
CALIBRATION_SHARE = 0.2
"""So many more canaries, relative to those attacked, on which thresholds are calibrated."""

RARE_ENTITIES, RARE_RELATIONS = 0.1, 0.25

STREAM = 7_777
"""Keeps the canaries' random stream apart from the parties' streams of the same seed."""


def insert_canaries(
    shards: Sequence[Graph], configuration: Configuration, kept: Path | None = None
) -> tuple[tuple[Graph, ...], Targets | None]:
    """The shards with the members among the canaries at the end of the victim's train, and all canaries.

    `kept` is the directory of a run that has begun: coins of the operating system are read there and never redrawn.
    """
    if configuration.experiment.canaries == 0:
        return tuple(shards), None
    names = client_names(len(shards))
    victim, adversary = (
        _position(names, name) for name in (configuration.experiment.victim, configuration.experiment.adversary)
    )
    if victim == adversary:
        raise ConfigurationError(f"victim and adversary are both {configuration.experiment.victim}: choose two clients")
    entities = Vocabulary.union([shard.entities for shard in shards])
    relations = Vocabulary.union([shard.relations for shard in shards])
    if kept is not None and configuration.experiment.canary_coins == "independent":
        canaries = _read_canaries(kept, entities, relations)
    else:
        other = shards[adversary] if configuration.experiment.canary_source == "shared" else None
        pool = pool_of(shards[victim], other, shards, entities, relations)
        canaries = _draw(shards[victim], pool, (entities, relations), configuration)
    changed, shard = list(shards), shards[victim]
    if canaries.design == "R":
        shard = without_triples(shard, canaries.everything, entities, relations)
    changed[victim] = with_triples(shard, canaries.inserted, entities, relations)
    return tuple(changed), canaries


def _draw(victim: Graph, pool: Pool, names: tuple[Vocabulary, Vocabulary], configuration: Configuration) -> Targets:
    """The triples by the run's seed, who is a member by the rule of `canary_coins`."""
    random = np.random.default_rng(np.random.SeedSequence(configuration.experiment.seed or 0, spawn_key=(STREAM,)))
    count, source, calibration = configuration.experiment.canaries, configuration.experiment.canary_source, 0
    membership: Membership = "coins"
    if configuration.experiment.canary_coins == "half":
        membership, calibration = "half", 2 * round(CALIBRATION_SHARE * count / 2)
    if source == "real":
        canaries = draw_real(victim, pool, names, random, count, membership, calibration)
    else:
        chosen = rare_part(pool) if source == "rare" else pool
        canaries = draw_canaries(chosen, random, count, membership, calibration, likely=source == "likely")
    if configuration.experiment.canary_coins != "independent":
        return canaries
    return replace(canaries, members=system_coins(configuration.experiment.canaries))


def system_coins(count: int) -> Bits:
    """Independent fair coins from the operating system.

    >>> coins = system_coins(12)
    >>> len(coins), coins.dtype.name
    (12, 'bool')
    """
    flips = np.frombuffer(secrets.token_bytes(-(-count // 8)), dtype=np.uint8)
    return np.unpackbits(flips)[:count].astype(np.bool_)


def rare_part(pool: Pool) -> Pool:
    """The pool with only the victim's rare names: what is seen once is remembered best.

    Entities of degree 1 in the victim's train (or its tenth of lowest degree, where that reaches higher), and the
    quarter of its relations with the fewest triples.
    """
    ends, used = pool.fitting[:, [HEAD, TAIL]].ravel(), pool.fitting[:, RELATION]
    degree = np.bincount(ends, minlength=pool.sizes[0])[pool.entities]
    frequency = np.bincount(used, minlength=pool.sizes[1])[pool.relations]
    low = max(1.0, float(np.quantile(degree, RARE_ENTITIES)))
    few = max(1.0, float(np.quantile(frequency, RARE_RELATIONS)))
    return replace(pool, entities=pool.entities[degree <= low], relations=pool.relations[frequency <= few])


def _read_canaries(run: Path, entities: Vocabulary, relations: Vocabulary) -> Targets:
    if not (run / CANARIES).exists():
        raise RunError(
            f"{run / CANARIES}: missing, and the coins of an audit are nowhere else, so nobody can tell what the run "
            "was trained on; restore the file from a copy, or start a new run"
        )
    return read_targets(run / CANARIES, entities, relations)


def keep_canaries(run: Path, canaries: Targets | None, shards: Sequence[Graph]) -> None:
    """Write the canaries, with who is a member, beside the run that they are in."""
    if canaries is None or (run / CANARIES).exists():
        return
    entities = Vocabulary.union([shard.entities for shard in shards])
    relations = Vocabulary.union([shard.relations for shard in shards])
    write_targets(run / CANARIES, canaries, entities, relations)


def with_triples(shard: Graph, triples: Triples, entities: Vocabulary, relations: Vocabulary) -> Graph:
    """The shard with more training triples, given in the run's numbers.

    >>> shard = Graph.from_names("client-0", [("b", "likes", "a")])
    >>> more = np.array([[0, 0, 1]], np.int32)
    >>> with_triples(shard, more, Vocabulary(("a", "b")), Vocabulary(("likes",))).train.tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    entity, relation = shard.entities.id_of, shard.relations.id_of
    local = [(entity(entities[h]), relation(relations[r]), entity(entities[t])) for h, r, t in triples.tolist()]
    added = np.array(local, dtype=np.int32).reshape(-1, 3)
    return replace(shard, train=np.concatenate([shard.train, added]))


def _position(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise ConfigurationError(f"no client {name!r}: expected one of {', '.join(names)}; canaries need two clients")
    return names.index(name)
