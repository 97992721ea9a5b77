"""Design R: real triples of the victim, each of which a coin leaves in its training data or takes out.

The triple is ordinary, and nothing but the coin decides whether it is a member. So an attack cannot win by plausibility
(as in A and D) or by a bias of the held-out triples (as in B), and a defence cannot hide behind the fact that random
triples are easy to ignore (as in C under a noisy copy). Everything else the adversary may know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.experiments.targets import Bits, Membership, Pool, Targets, run_ids, tossed, triple_keys
from fedkge.graph import HEAD, RELATION, TAIL, Graph, Triples, Vocabulary

Ids = NDArray[np.integer[Any]]
MOST = 0.5
"""At most this part of the victim's triples become targets: it must have enough others to learn from."""


def draw_real(
    victim: Graph,
    pool: Pool,
    names: tuple[Vocabulary, Vocabulary],
    random: np.random.Generator,
    count: int,
    membership: Membership = "half",
    calibration: int = 0,
) -> Targets:
    """Draw `count` training triples of the victim that stand nowhere else, and up to `calibration` more.

    `pool` must hold all of the victim's names. Triples of other clients, and triples that the victim also holds out,
    are no targets: taken from its training data, they would still be somewhere. Members are a half, or one coin each.

    >>> from fedkge.experiments.targets import pool_of
    >>> one = Graph.from_names("client-0", [(str(number), "next to", str(number + 1)) for number in range(20)])
    >>> pool = pool_of(one, None, [one], one.entities, one.relations)
    >>> targets = draw_real(one, pool, (one.entities, one.relations), np.random.default_rng(1), 8)
    >>> targets.design, len(targets), int(targets.members.sum())
    ('R', 8, 4)
    """
    sizes = (len(names[0]), len(names[1]))
    held_out = run_ids(np.concatenate([victim.valid, victim.test]), victim, *names)
    real = pool.real[~np.isin(triple_keys(pool.real, sizes), triple_keys(held_out, sizes))]
    most = int(MOST * len(real))
    if not 1 <= count <= most:
        raise DataError(
            f"design R: expected 1 to {most:,} targets, half of the {len(real):,} triples that {pool.victim} alone "
            f"holds, got {count:,}: ask for fewer --canaries"
        )
    drawn = random.permutation(real)[: min(count + calibration, most)]
    return tossed("R", np.ascontiguousarray(drawn), count, membership, random)


def part_within(targets: Targets, entities: Ids, relations: Ids) -> Targets:
    """The targets among these names: those that a client, which knows only rows of its own names, can be asked about.

    >>> targets = Targets("R", np.array([[0, 0, 1], [0, 0, 2]], np.int32), np.array([True, False]))
    >>> part_within(targets, np.array([0, 2]), np.array([0])).triples.tolist()
    [[0, 0, 2]]
    """

    def inside(triples: Triples) -> Bits:
        known = np.isin(triples[:, [HEAD, TAIL]], entities).all(axis=1) & np.isin(triples[:, RELATION], relations)
        return np.asarray(known, dtype=np.bool_)

    here, there = inside(targets.triples), inside(targets.calibration_triples)
    return Targets(
        targets.design,
        np.ascontiguousarray(targets.triples[here]),
        targets.members[here],
        np.ascontiguousarray(targets.calibration_triples[there]),
        targets.calibration_members[there],
    )


def without_triples(shard: Graph, triples: Triples, entities: Vocabulary, relations: Vocabulary) -> Graph:
    """The shard without these training triples, given in the run's numbers. Its names stay: they are public.

    >>> shard = Graph.from_names("client-0", [("a", "likes", "b"), ("b", "likes", "a")])
    >>> without_triples(shard, np.array([[0, 0, 1]], np.int32), shard.entities, shard.relations).train.tolist()
    [[1, 0, 0]]
    """
    sizes = (len(entities), len(relations))
    keys = triple_keys(run_ids(shard.train, shard, entities, relations), sizes)
    return replace(shard, train=np.ascontiguousarray(shard.train[~np.isin(keys, triple_keys(triples, sizes))]))
