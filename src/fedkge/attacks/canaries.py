"""Canaries: random triples that nobody holds, half of which go into the victim's training data (design C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedkge.attacks.target_files import write_targets
from fedkge.attacks.targets import Targets, draw_canaries, pool_of
from fedkge.configuration import Configuration
from fedkge.errors import ConfigurationError
from fedkge.federation.run import client_names
from fedkge.graph import Graph, Triples, Vocabulary

CANARIES = "canaries.jsonl"
CALIBRATION_SHARE = 0.2
"""So many more canaries, relative to those attacked, on which thresholds are calibrated."""

STREAM = 7_777
"""Keeps the canaries' random stream apart from the parties' streams of the same seed."""


def insert_canaries(shards: Sequence[Graph], configuration: Configuration) -> tuple[tuple[Graph, ...], Targets | None]:
    """The shards with the members among the canaries in the victim's train, and all canaries; by the run's seed."""
    if configuration.canaries == 0:
        return tuple(shards), None
    names = client_names(len(shards))
    victim, adversary = (_position(names, name) for name in (configuration.victim, configuration.adversary))
    if victim == adversary:
        raise ConfigurationError(f"victim and adversary are both {configuration.victim}: choose two clients")
    entities = Vocabulary.union([shard.entities for shard in shards])
    relations = Vocabulary.union([shard.relations for shard in shards])
    pool = pool_of(shards[victim], shards[adversary], shards, entities, relations)
    random = np.random.default_rng(np.random.SeedSequence(configuration.seed or 0, spawn_key=(STREAM,)))
    calibration = 2 * round(CALIBRATION_SHARE * configuration.canaries / 2)
    canaries = draw_canaries(pool, random, configuration.canaries, calibration=calibration)
    changed = list(shards)
    changed[victim] = with_triples(shards[victim], canaries.inserted, entities, relations)
    return tuple(changed), canaries


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
