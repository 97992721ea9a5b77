"""Target triples: what an attack must tell apart. The design decides the result, so there are five.

A  real training triples of the victim   against  uniform random triples            (plausibility alone separates them)
B  real training triples of the victim   against  its held-out triples              (the strict membership game)
C  random triples put into its training  against  random triples that were left out (canaries; the paper's wording)
D  real training triples of the victim   against  corruptions that fit the relation
R  real triples that a coin left it      against  real triples that a coin took from it before training

Both ends of every target are entities, and its relation is one, that victim and adversary share (R: the victim has).
A non-member is in no client's graph (B: in no client's training triples). All ids are the run's, as in entities.txt
and relations.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.base.registry import look_up
from fedkge.base.short_repr import short_repr
from fedkge.graph import HEAD, RELATION, TAIL, Graph, Triples, Vocabulary, distinct_triples, no_triples

Design: TypeAlias = Literal["A", "B", "C", "D", "R"]
Membership: TypeAlias = Literal["half", "coins"]
Bits: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = NDArray[np.int64]
"""Triples as single numbers: (head * relations + relation) * entities + tail."""

DESIGNS: dict[str, str] = {
    "A": "real against uniform random",
    "B": "real against held-out real",
    "C": "inserted canaries against random",
    "D": "real against type-consistent corruption",
    "R": "real, left in by a coin against real, taken out by a coin",
}
COUNT = 500
CALIBRATION = 100
AUXILIARY = 20


@short_repr("design")
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Triples with their membership bits, and others, disjoint from them, on which a threshold may be chosen."""

    design: Design
    triples: Triples
    members: Bits
    calibration_triples: Triples = field(default_factory=no_triples)
    calibration_members: Bits = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __post_init__(self) -> None:
        look_up(DESIGNS, self.design, "design of targets")
        pairs = ((self.triples, self.members), (self.calibration_triples, self.calibration_members))
        for triples, bits in pairs:
            if triples.dtype != np.int32 or triples.shape != (len(bits), 3) or bits.dtype != np.bool_:
                raise DataError(
                    f"expected int32 triples of shape (n, 3) with n bits, got {triples.dtype} {triples.shape} "
                    f"with {bits.dtype} {bits.shape}"
                )

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def everything(self) -> Triples:
        """Targets and calibration triples in one table."""
        return np.concatenate([self.triples, self.calibration_triples])

    @property
    def inserted(self) -> Triples:
        """The members of both kinds: in design C what must be added to the victim's training triples."""
        return np.concatenate([self.triples[self.members], self.calibration_triples[self.calibration_members]])


@short_repr("victim", "adversary")
@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """What targets are drawn from, in the run's ids; make one with `pool_of`.

    real      the victim's training triples inside the overlap that no other client holds
    held_out  its valid and test triples inside the overlap that are in nobody's training triples
    fitting   all its training triples with a shared relation: which entities occur with it on which side
    known     sorted keys of all triples of all clients, and of the excluded ones
    """

    victim: str
    adversary: str
    sizes: tuple[int, int]
    entities: NDArray[np.int64]
    relations: NDArray[np.int64]
    real: Triples
    held_out: Triples
    fitting: Triples
    known: Keys

    @property
    def overlap(self) -> str:
        """The overlap in words, for messages."""
        counts = f"the {len(self.entities):,} entities and {len(self.relations):,} relations"
        return f"{counts} that {self.victim} shares with {self.adversary}" if self.adversary else f"{counts} of its own"


def pool_of(
    victim: Graph,
    adversary: Graph | None,
    shards: Iterable[Graph],
    entities: Vocabulary,
    relations: Vocabulary,
    excluded: Triples | None = None,
) -> Pool:
    """Look at the clients once, for all designs.

    `adversary` None stands for one that sees all of the victim's rows (the server, a collusion). `shards` must hold
    `victim` itself. Triples in `excluded` (the run's ids; canaries that were inserted, auxiliary triples) become
    neither member nor non-member.

    >>> one = Graph.from_names("client-0", [("a", "likes", "b"), ("b", "likes", "c"), ("c", "likes", "d")])
    >>> two = Graph.from_names("client-1", [("b", "likes", "a"), ("c", "likes", "a")])
    >>> pool_of(one, two, [one, two], one.entities, one.relations).real.tolist()
    [[0, 0, 1], [1, 0, 2]]
    """
    sizes, clients = (len(entities), len(relations)), list(shards)
    place = next((number for number, shard in enumerate(clients) if shard is victim), None)
    if place is None:
        raise DataError(f"expected the victim {victim.name} among the {len(clients)} shards, got others only")
    tables = [run_ids(shard.all_triples, shard, entities, relations) for shard in clients]
    taken = triple_keys(no_triples() if excluded is None else excluded, sizes)
    keys = [triple_keys(table, sizes) for table in tables]
    training = [key[: len(shard.train)] for key, shard in zip(keys, clients, strict=True)]
    real, held_out = tables[place][: len(victim.train)], distinct_triples(tables[place][len(victim.train) :])
    real = real[~_among(training[place], np.unique(taken))]
    other = adversary or victim
    shared_entities = _shared(victim.entities, other.entities, entities)
    shared_relations = _shared(victim.relations, other.relations, relations)

    def inside(triples: Triples, forbidden: Sequence[Keys]) -> Triples:
        keep = np.isin(triples[:, RELATION], shared_relations)
        keep &= np.isin(triples[:, [HEAD, TAIL]], shared_entities).all(axis=1)
        return triples[keep & ~_among(triple_keys(triples, sizes), np.unique(np.concatenate([*forbidden, taken])))]

    return Pool(
        victim=victim.name,
        adversary="" if adversary is None else adversary.name,
        sizes=sizes,
        entities=shared_entities,
        relations=shared_relations,
        real=inside(real, keys[:place] + keys[place + 1 :]),
        held_out=inside(held_out, training),
        fitting=real[np.isin(real[:, RELATION], shared_relations)],
        known=np.unique(np.concatenate([*keys, taken])),
    )


def draw_targets(
    design: Design, pool: Pool, random: np.random.Generator, count: int = COUNT, calibration: int = CALIBRATION
) -> Targets:
    """Draw `count` members and `count` non-members, and up to `calibration` more of each for a threshold.

    Targets come first: where the pool is too small for both, the calibration set gets what is left, or nothing.
    The order is random. The same generator state gives the same triples.

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


def tossed(
    design: Design, triples: Triples, count: int, membership: Membership, random: np.random.Generator
) -> Targets:
    """The first `count` of these triples as targets, the others for calibration: half of each, or by one coin each."""
    bits = []
    for size in (count, len(triples) - count):
        half = random.permutation(np.arange(size) < size // 2)
        bits.append(half if membership == "half" else random.integers(0, 2, size).astype(np.bool_))
    return Targets(design, triples[:count], bits[0], triples[count:], bits[1])


def auxiliary_triples(
    victim: Graph,
    targets: Iterable[Targets],
    entities: Vocabulary,
    relations: Vocabulary,
    random: np.random.Generator,
    per_relation: int = AUXILIARY,
) -> Triples:
    """Up to so many real training triples of each of the victim's relations, none of them a target of any kind.

    They are what an experiment grants the server beforehand. A relation whose triples are all targets gets none.

    >>> one = Graph.from_names("client-0", [("a", "likes", "b"), ("b", "likes", "c"), ("a", "hates", "c")])
    >>> auxiliary_triples(one, [], one.entities, one.relations, np.random.default_rng(1), per_relation=1)[:, 1].tolist()
    [0, 1]
    """
    sizes = (len(entities), len(relations))
    taken = np.unique(np.concatenate([np.empty(0, np.int64), *(triple_keys(one.everything, sizes) for one in targets)]))
    triples = random.permutation(run_ids(victim.train, victim, entities, relations))
    triples = triples[~_among(triple_keys(triples, sizes), taken)]
    triples = triples[np.argsort(triples[:, RELATION], kind="stable")]
    _, first, counts = np.unique(triples[:, RELATION], return_index=True, return_counts=True)
    place = np.arange(len(triples)) - np.repeat(first, counts)  # 0, 1, 2 ... within a relation
    return np.ascontiguousarray(triples[place < per_relation])


def run_ids(triples: Triples, shard: Graph, entities: Vocabulary, relations: Vocabulary) -> Triples:
    """A shard's triples with the run's ids in place of its own.

    >>> shard = Graph.from_names("client-0", [("b", "likes", "a")])
    >>> run_ids(shard.train, shard, Vocabulary(("a", "b")), Vocabulary(("hates", "likes"))).tolist()
    [[1, 1, 0]]
    """
    entity = np.array([entities.id_of(name, "entity") for name in shard.entities], dtype=np.int32)
    relation = np.array([relations.id_of(name, "relation") for name in shard.relations], dtype=np.int32)
    return np.stack([entity[triples[:, HEAD]], relation[triples[:, RELATION]], entity[triples[:, TAIL]]], axis=1)


def triple_keys(triples: Triples, sizes: tuple[int, int]) -> Keys:
    """Triples as single numbers, for `sizes` entities and relations.

    >>> triple_keys(np.array([[1, 2, 3]]), (10, 5)).tolist()
    [73]
    """
    head, relation, tail = triples.astype(np.int64).T
    keys: Keys = (head * sizes[1] + relation) * sizes[0] + tail
    return keys


def _among(keys: Keys, known: Keys) -> Bits:
    """Which keys occur in the sorted `known`; unlike np.isin it never sorts the larger of the two again."""
    if len(known) == 0:
        return np.zeros(len(keys), dtype=np.bool_)
    found: Bits = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return found


def _shared(victim: Vocabulary, adversary: Vocabulary, run: Vocabulary) -> NDArray[np.int64]:
    return np.array(sorted(run.index[name] for name in victim if name in adversary), dtype=np.int64)


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
        fresh = fresh[(head != tail) & ~_among(triple_keys(fresh, pool.sizes), pool.known)]
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
        fresh = fresh[(fresh[:, HEAD] != fresh[:, TAIL]) & ~_among(triple_keys(fresh, pool.sizes), pool.known)]
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
        choices = choices[
            (choices[:, HEAD] != choices[:, TAIL]) & ~_among(triple_keys(choices, pool.sizes), pool.known)
        ]
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
