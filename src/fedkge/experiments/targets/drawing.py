"""Draw targets from a pool, by design."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.base.registry import look_up
from fedkge.experiments.targets.designs import DESIGNS, Design, Membership, Targets, tossed
from fedkge.experiments.targets.pool import Pool, among, triple_keys
from fedkge.graph import HEAD, RELATION, TAIL, Triples, distinct_triples, no_triples

COUNT = 500
CALIBRATION = 100


def draw_targets(
    design: Design, pool: Pool, random: np.random.Generator, count: int = COUNT, calibration: int = CALIBRATION
) -> Targets:
    """Draw `count` members and `count` non-members, and up to `calibration` more of each for a threshold.

    Targets come first: where the pool is too small for both, the calibration set gets what is left, or nothing.
    The order is random. The same generator state gives the same triples.

    >>> from fedkge.experiments.targets import pool_of
    >>> from fedkge.graph.split import split
    >>> from fedkge.graph.synthetic import synthetic_graph
    >>> graph = synthetic_graph(200, 10, 3000, seed=1)
    >>> shards = split(graph, clients=2, by="entity", seed=7, overlap=0.8)
    >>> pool = pool_of(shards[0], shards[1], shards, graph.entities, graph.relations)
    >>> targets = draw_targets("D", pool, np.random.default_rng(3), count=50, calibration=10)
    >>> len(targets), int(targets.members.sum()), len(targets.calibration_triples)
    (100, 50, 20)
    """
    look_up(DESIGNS, design, "design of targets")
    if count < 1 or calibration < 0:
        raise ConfigurationError(f"expected at least 1 target and 0 calibration triples, got {count}, {calibration}")
    if design == "R":
        raise ConfigurationError("design R is drawn before training: train with --canaries 4000 --canary-source real")
    if design == "C":
        return draw_canaries(pool, random, 2 * count, "half", 2 * calibration)
    real = random.permutation(pool.real)
    _require(len(real), count, f"design {design}: training triples of {pool.victim} that no other client has", pool)
    wanted = min(len(real), count + calibration)
    if design == "A":
        others = _random_triples(pool, random, min(wanted, _free(pool)))
    elif design == "B":
        others = random.permutation(pool.held_out)[:wanted]
    else:
        others = _corruptions(pool, random, real, wanted)
    kind = {"A": "random triples in no graph", "B": f"held-out triples of {pool.victim}", "D": "fitting corruptions"}
    _require(len(others), count, f"design {design}: {kind[design]}", pool)
    wanted = len(others)  # of each kind: the first `count` are targets, the rest calibrate
    triples, bits = np.concatenate([real[:wanted], others]), np.arange(2 * wanted) < wanted
    first = np.tile(np.arange(wanted) < count, 2)
    order, rest = random.permutation(np.flatnonzero(first)), random.permutation(np.flatnonzero(~first))
    return Targets(design, triples[order], bits[order], triples[rest], bits[rest])


def draw_canaries(
    pool: Pool,
    random: np.random.Generator,
    canaries: int = 2 * COUNT,
    membership: Membership = "half",
    calibration: int = 0,
    likely: bool = False,
) -> Targets:
    """Design C: distinct random triples in no graph, of which the members are to be put into the victim's training.

    "half" makes exactly half of them members, as the paper does; "coins" tosses a fair coin for each, as an audit must
    (with a generator that is seeded by the operating system). `calibration` more canaries follow the same rule.
    They are uniform, or `likely`: names that often go with their relation do so in canaries too.

    >>> from fedkge.experiments.targets import pool_of
    >>> from fedkge.graph import Graph
    >>> one = Graph.from_names("client-0", [("a", "likes", "b"), ("b", "likes", "c"), ("c", "likes", "d")])
    >>> pool = pool_of(one, None, [one], one.entities, one.relations)
    >>> targets = draw_canaries(pool, np.random.default_rng(1), canaries=8)
    >>> len(targets), len(targets.inserted)
    (8, 4)
    """
    if canaries < 1 or calibration < 0 or membership not in get_args(Membership):
        raise ConfigurationError(
            "expected at least 1 canary, 0 for calibration and membership half or coins, "
            f"got {canaries}, {calibration} and {membership!r}"
        )
    if likely:
        triples = _likely_triples(pool, random, canaries + calibration)
        if len(triples) < canaries:
            raise DataError(
                f"expected {canaries:,} likely triples of {pool.victim} that nobody holds, found {len(triples):,}: "
                "ask for fewer --canaries, or choose --canary-source victim"
            )
    else:
        _require(_free(pool), canaries, "design C: random triples in no graph", pool)
        triples = _random_triples(pool, random, min(canaries + calibration, _free(pool)))
    return tossed("C", triples, canaries, membership, random)


def _require(found: int, wanted: int, what: str, pool: Pool) -> None:
    if found < wanted:
        raise DataError(
            f"{what}: expected at least {wanted:,} within {pool.overlap}, got {found:,}; ask for a smaller "
            "--targets-count, split with a larger --overlap or into fewer clients, or choose another pair of clients"
        )


def _free(pool: Pool) -> int:
    """How many triples of different shared entities and a shared relation are in no graph."""
    pair, tail = np.divmod(pool.known, pool.sizes[0])
    head, relation = np.divmod(pair, pool.sizes[1])
    known = (head != tail) & np.isin(relation, pool.relations)
    known &= np.isin(head, pool.entities) & np.isin(tail, pool.entities)
    return len(pool.entities) * (len(pool.entities) - 1) * len(pool.relations) - int(np.count_nonzero(known))


def _random_triples(pool: Pool, random: np.random.Generator, wanted: int) -> Triples:
    """Distinct uniform random triples in no graph, no loops; `wanted` must not exceed `_free`."""
    drawn, batch = no_triples(), 2 * wanted + 64
    while len(drawn) < wanted:
        head, tail = random.choice(pool.entities, (2, batch))
        fresh = np.stack([head, random.choice(pool.relations, batch), tail], axis=1).astype(np.int32)
        fresh = fresh[(head != tail) & ~among(triple_keys(fresh, pool.sizes), pool.known)]
        drawn, batch = distinct_triples(np.concatenate([drawn, fresh])), min(2 * batch, 1 << 20)
    return drawn[:wanted]


def _likely_triples(pool: Pool, random: np.random.Generator, wanted: int) -> Triples:
    """Distinct triples in no graph, no loops: the relation and head of one training triple with the tail of another
    of the same relation. Fewer than wanted where a batch finds no new one.
    """
    real = pool.fitting[np.argsort(pool.fitting[:, RELATION], kind="stable")]
    first, last = (np.searchsorted(real[:, RELATION], real[:, RELATION], side) for side in ("left", "right"))
    drawn, batch = no_triples(), 4 * wanted + 64
    before = -1
    while before < len(drawn) < wanted and len(real):
        before = len(drawn)
        one = random.integers(0, len(real), batch)
        fresh = real[one].copy()
        fresh[:, TAIL] = real[random.integers(first[one], last[one]), TAIL]
        fresh = fresh[(fresh[:, HEAD] != fresh[:, TAIL]) & ~among(triple_keys(fresh, pool.sizes), pool.known)]
        drawn = distinct_triples(np.concatenate([drawn, fresh]))
    return drawn[:wanted]


def _corruptions(pool: Pool, random: np.random.Generator, real: Triples, wanted: int) -> Triples:
    """Real triples, the first ones first, with one end replaced by another that occurs there with the relation.

    A triple that has none is passed over; when all have had their turn, they start again, until no new one is found.
    """
    fillers: dict[tuple[int, int], NDArray[np.int64]] = {}
    drawn: dict[tuple[int, int, int], None] = {}

    def corruption(triple: Triples, column: int) -> tuple[int, int, int] | None:
        place = (column, int(triple[RELATION]))
        if place not in fillers:
            there = pool.fitting[pool.fitting[:, RELATION] == place[1], column]
            fillers[place] = np.intersect1d(there, pool.entities)
        choices = np.tile(triple, (len(fillers[place]), 1))
        choices[:, column] = fillers[place]
        choices = choices[(choices[:, HEAD] != choices[:, TAIL]) & ~among(triple_keys(choices, pool.sizes), pool.known)]
        for head, relation, tail in (choices[row].tolist() for row in random.permutation(len(choices))):
            if (head, relation, tail) not in drawn:
                return head, relation, tail
        return None

    before = -1
    while before < len(drawn) < wanted:
        before = len(drawn)
        for triple in real:
            if len(drawn) == wanted:
                break
            columns = (HEAD, TAIL) if random.random() < 0.5 else (TAIL, HEAD)
            if found := corruption(triple, columns[0]) or corruption(triple, columns[1]):
                drawn[found] = None
    return np.array(list(drawn), dtype=np.int32).reshape(-1, 3)
