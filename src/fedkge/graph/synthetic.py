"""A seeded generator of graphs of any size, with the patterns that real ones have.

Entities have types; within a type they form communities. A relation leads from one type to another and from each
community to one other community, so that its triples can be learned; who takes part follows Zipf's law.
Work and memory grow with the number of triples only: two million entities and ten million triples are a minute's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from fedkge.errors import ConfigurationError
from fedkge.graph.graph import HEAD, RELATION, TAIL, Graph, Vocabulary

KINDS = ("many_to_many", "one_to_many", "symmetric", "inverse", "composed")
"""Relation number i is of kind i modulo 5; the last two are made from the first one's triples."""

COMMUNITY_SIZE = 16
ONE_OF = 4  # one of four members of a community can be a head in a one-to-many relation
MOST_TYPES = 12
ROUNDS = 12
MOST_CELLS = 1 << 22

Numbers: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = NDArray[np.int64]
"""Distinct (head, tail) pairs of one relation, each as one number: head * entities + tail."""

Draw: TypeAlias = Callable[[int], Pairs]
"""Makes about as many candidate pairs as asked; they may repeat."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberedNames(Sequence[str]):
    """Names like "e123", made when they are asked for, so that millions of them take no room.

    >>> names = NumberedNames("e", range(2_000_000))
    >>> len(names), names[123], names.take([5, 7])[1]
    (2000000, 'e123', 'e7')
    """

    prefix: str
    numbers: Sequence[int] | NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[str, ...]: ...
    def __getitem__(self, position: int | slice) -> str | tuple[str, ...]:
        if isinstance(position, slice):
            return tuple(f"{self.prefix}{number}" for number in self.numbers[position])
        return f"{self.prefix}{self.numbers[position]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{number}" for number in self.numbers)

    def take(self, positions: Sequence[int] | NDArray[np.int32]) -> NumberedNames:
        """The names at these positions, as lazily made as all of them."""
        return NumberedNames(self.prefix, np.asarray(self.numbers, dtype=np.int32)[positions])


@dataclass(frozen=True, slots=True)
class _World:
    """Where each type's entities begin (by number before shuffling), and how unequal they are."""

    starts: Numbers
    exponent: float
    noise: float

    @property
    def entities(self) -> int:
        return int(self.starts[-1])

    def size(self, kind: int) -> int:
        return int(self.starts[kind + 1] - self.starts[kind])

    def communities(self, kind: int) -> int:
        return max(1, self.size(kind) // COMMUNITY_SIZE)


@dataclass(frozen=True, slots=True)
class _Relation:
    """One relation's plan: the types it joins, how far it shifts communities, and what it is made from."""

    kind: str
    name: str
    head_type: int
    tail_type: int
    shift: int
    sources: tuple[int, ...] = ()


def synthetic_graph(
    entities: int,
    relations: int,
    triples: int,
    seed: int = 0,
    *,
    types: int | None = None,
    exponent: float = 1.0,
    noise: float = 0.1,
    valid_fraction: float = 0.05,
    test_fraction: float = 0.05,
    name: str = "synthetic",
) -> Graph:
    """A graph with exactly as many entities, relations and distinct triples as asked; no self-loops.

    Every entity and every relation occurs in train. `exponent` is Zipf's (0: all alike); `noise` is the share of
    many-to-many triples that ignore communities; `types` (at most one per five relations) defaults to at most 12.

    >>> graph = synthetic_graph(entities=100, relations=5, triples=1000, seed=7)
    >>> len(graph.entities), len(graph.train), len(graph.valid), len(graph.test)
    (100, 900, 50, 50)
    >>> graph.entities[3], list(graph.relations)[:4]
    ('e3', ['r0_many_to_many', 'r1_one_to_many', 'r2_symmetric', 'r3_inverse_of_r0'])
    """
    kinds = max(1, min(MOST_TYPES, -(-relations // len(KINDS)), entities // COMMUNITY_SIZE)) if types is None else types
    _check(entities, relations, triples, kinds, seed, valid_fraction + test_fraction, noise)
    random = np.random.default_rng(np.random.SeedSequence(seed))
    world = _World(np.linspace(0, entities, kinds + 1).astype(np.int64), exponent, noise)
    plan = _plan(relations, kinds, random)
    covering = _cover(world, plan, random)
    pairs = _fill(world, plan, covering, _shares(relations, triples - entities, random), random)
    return _assemble(name, world, plan, pairs, covering, (valid_fraction, test_fraction), random)


def _check(entities: int, relations: int, triples: int, types: int, seed: int, held_out: float, noise: float) -> None:
    most_types = -(-relations // len(KINDS))
    if min(entities, relations, triples) < 1 or seed < 0:
        raise ConfigurationError(
            "expected at least 1 entity, 1 relation, 1 triple and a seed from 0, "
            f"got {entities}, {relations}, {triples} and {seed}"
        )
    if not 1 <= types <= most_types or entities < 2 * types:
        raise ConfigurationError(
            f"expected 1 to {min(most_types, entities // 2)} types for {relations} relations and {entities} entities "
            f"(one type per five relations, two entities per type), got {types}"
        )
    if not 0 <= held_out < 1 or not 0 <= noise <= 1:
        raise ConfigurationError(f"expected fractions from 0 to 1, got {held_out} held out and noise {noise}")
    needed = entities + len(KINDS) * relations
    if triples * (1 - held_out) < needed:
        raise ConfigurationError(
            f"expected at least {needed} training triples so that every entity and relation occurs in train, "
            f"got {triples} of which {held_out:.0%} are held out: ask for more triples or fewer entities"
        )


def _plan(relations: int, types: int, random: np.random.Generator) -> list[_Relation]:
    """Each group of five relations starts from one type; see KINDS."""

    def types_of(group: int) -> tuple[int, int]:
        return group % types, (group + 1 + group // types) % types

    plan = []
    for index in range(relations):
        group, kind = index // len(KINDS), KINDS[index % len(KINDS)]
        base, shift = group * len(KINDS), int(random.integers(1, 1 << 30))
        head, tail = types_of(group)
        if kind == "symmetric":
            plan.append(_Relation(kind, f"r{index}_symmetric", head, head, 0))
        elif kind == "inverse":
            plan.append(_Relation(kind, f"r{index}_inverse_of_r{base}", tail, head, 0, (base,)))
        elif kind == "composed":
            second = tail * len(KINDS)
            plan.append(_Relation(kind, f"r{index}_r{base}_then_r{second}", head, types_of(tail)[1], 0, (base, second)))
        else:
            plan.append(_Relation(kind, f"r{index}_{kind}", head, tail, shift))
    return plan


def _shares(relations: int, triples: int, random: np.random.Generator) -> Numbers:
    """How many triples each relation should get beyond the covering ones: Zipf's law in a random order."""
    weights = random.permutation(1.0 / np.arange(2, relations + 2))
    extra = np.floor((triples - len(KINDS) * relations) * weights / weights.sum())
    shares: Numbers = len(KINDS) + extra.astype(np.int64)
    shares[0] += triples - shares.sum()
    return shares


def _zipf(sizes: int | Numbers, count: int, exponent: float, random: np.random.Generator) -> Numbers:
    """Ranks from 0 to size - 1, drawn by Zipf's law through the inverse of its continuous distribution."""
    uniform = random.random(count)
    top = np.asarray(sizes, dtype=np.float64) + 1
    if abs(exponent - 1) < 1e-9:
        position = top**uniform
    else:
        power = 1 - exponent
        position = (1 + uniform * (top**power - 1)) ** (1 / power)
    ranks: Numbers = np.minimum(position.astype(np.int64) - 1, np.asarray(sizes) - 1)
    return ranks


def _partners(
    world: _World, ranks: Numbers, kind: int, other: int, shift: int, random: np.random.Generator, one_of: int = 1
) -> Numbers:
    """For entities of type `kind` given by rank, a rank of type `other` out of the community that belongs to theirs.

    Only the first member out of every `one_of` is ever drawn.
    """
    size, communities = world.size(other), world.communities(other)
    community = (ranks % world.communities(kind) + shift) % communities
    members = (size - 1 - community) // (communities * one_of) + 1
    partners: Numbers = community + communities * one_of * _zipf(members, len(ranks), world.exponent, random)
    return partners


def _draw(world: _World, relation: _Relation, random: np.random.Generator, count: int) -> Pairs:
    """Candidate pairs of a relation that is not made from others; they may repeat."""
    head_start, tail_start = world.starts[relation.head_type], world.starts[relation.tail_type]
    if relation.kind == "one_to_many":
        tails = random.permutation(world.size(relation.tail_type))[:count]
        heads = _partners(world, tails, relation.tail_type, relation.head_type, relation.shift, random, ONE_OF)
    else:
        heads = _zipf(world.size(relation.head_type), count, world.exponent, random)
        tails = _partners(world, heads, relation.head_type, relation.tail_type, relation.shift, random)
    if relation.kind == "many_to_many":
        stray = np.flatnonzero(random.random(count) < world.noise)
        tails[stray] = _zipf(world.size(relation.tail_type), len(stray), world.exponent, random)
    return _pairs(world, heads + head_start, tails + tail_start)


def _pairs(world: _World, heads: Numbers, tails: Numbers) -> Pairs:
    proper = heads != tails
    pairs: Pairs = heads[proper] * world.entities + tails[proper]
    return pairs


def _cover(world: _World, plan: list[_Relation], random: np.random.Generator) -> list[Pairs]:
    """Pairs that put every entity into the graph once as a head, dealt over its type's many-to-many relations."""
    covering: list[Pairs] = [np.empty(0, dtype=np.int64) for _ in plan]
    for kind in range(len(world.starts) - 1):
        leading = [i for i, relation in enumerate(plan) if relation.kind == KINDS[0] and relation.head_type == kind]
        for position, index in enumerate(leading):
            relation = plan[index]
            ranks = np.arange(position, world.size(kind), len(leading), dtype=np.int64)
            tails = _partners(world, ranks, kind, relation.tail_type, relation.shift, random)
            loops = (tails == ranks) & (relation.tail_type == kind)
            tails[loops] = (tails[loops] + 1) % world.size(kind)
            covering[index] = _pairs(world, ranks + world.starts[kind], tails + world.starts[relation.tail_type])
    return covering


def _unknown(drawn: Pairs, known: Pairs) -> Pairs:
    """The drawn pairs that are not known, sorted, each once; sorting beats NumPy's hashed sets here."""
    drawn = np.sort(drawn)
    drawn = drawn[np.diff(drawn, prepend=-1) > 0]
    if len(known) == 0:
        return drawn
    ordered = np.sort(known)
    nearest = ordered[np.minimum(np.searchsorted(ordered, drawn), len(ordered) - 1)]
    new: Pairs = drawn[nearest != drawn]
    return new


def _grow(pairs: Pairs, target: int, draw: Draw, random: np.random.Generator) -> Pairs:
    """Add drawn pairs that are new until there are `target`, or until drawing brings nothing more."""
    for _ in range(ROUNDS):
        missing = target - len(pairs)
        if missing <= 0:
            break
        new = _unknown(draw(missing + missing // 4 + 16), pairs)
        if len(new) == 0:
            break
        pairs = np.concatenate([pairs, random.permutation(new)[:missing]])
    return pairs


def _fill(
    world: _World, plan: list[_Relation], covering: list[Pairs], shares: Numbers, random: np.random.Generator
) -> list[Pairs]:
    """Draw every relation's pairs; what a relation has no room for goes to many-to-many relations."""
    pairs = list(covering)
    targets = [len(cover) + int(share) for cover, share in zip(covering, shares, strict=True)]
    for index in sorted(range(len(plan)), key=lambda i: len(plan[i].sources)):
        relation, target = plan[index], targets[index]
        if relation.kind == "one_to_many":
            pairs[index] = _draw(world, relation, random, target)
        elif relation.kind == "symmetric":
            pairs[index] = _symmetric(world, relation, random, target)
        elif relation.kind == "inverse":
            pairs[index] = _reversed(world, random.permutation(pairs[relation.sources[0]])[:target])
        else:
            draw = (
                _follow(world, pairs, relation, random) if relation.sources else partial(_draw, world, relation, random)
            )
            pairs[index] = _grow(pairs[index], target, draw, random)
        if len(pairs[index]) == 0:
            pairs[index] = _grow(pairs[index], 1, partial(_anything, world, relation, random), random)
    _spend(world, plan, pairs, sum(targets) - sum(len(part) for part in pairs), random)
    return pairs


def _reversed(world: _World, pairs: Pairs) -> Pairs:
    return pairs % world.entities * world.entities + pairs // world.entities


def _symmetric(world: _World, relation: _Relation, random: np.random.Generator, target: int) -> Pairs:
    """Half as many pairs as asked, and each of them the other way round."""

    def draw(count: int) -> Pairs:
        drawn = _draw(world, relation, random, count)
        return np.minimum(drawn, _reversed(world, drawn))

    half = _grow(np.empty(0, dtype=np.int64), target // 2, draw, random)
    return np.concatenate([half, _reversed(world, half)])


def _follow(world: _World, pairs: list[Pairs], relation: _Relation, random: np.random.Generator) -> Draw:
    """Draws pairs (a, c) for which some b has (a, b) in the first source and (b, c) in the second."""
    first, second = pairs[relation.sources[0]], np.sort(pairs[relation.sources[1]])
    starts = second // world.entities

    def draw(count: int) -> Pairs:
        chosen = first[random.integers(len(first), size=count)]
        middle = chosen % world.entities
        low, high = np.searchsorted(starts, middle, "left"), np.searchsorted(starts, middle, "right")
        found = high > low
        step = low[found] + (random.random(int(found.sum())) * (high - low)[found]).astype(np.int64)
        return _pairs(world, chosen[found] // world.entities, second[step] % world.entities)

    return draw


def _anything(world: _World, relation: _Relation, random: np.random.Generator, count: int) -> Pairs:
    """Pairs of the right types and nothing else; all that there are when they are few."""
    rows, columns = world.size(relation.head_type), world.size(relation.tail_type)
    cells = np.arange(rows * columns) if rows * columns <= MOST_CELLS else random.integers(rows * columns, size=count)
    heads, tails = (
        cells // columns + world.starts[relation.head_type],
        cells % columns + world.starts[relation.tail_type],
    )
    return _pairs(world, heads, tails)


def _spend(world: _World, plan: list[_Relation], pairs: list[Pairs], left: int, random: np.random.Generator) -> None:
    """Put `left` more pairs into the many-to-many relations: as they come if possible, else any of the right types."""
    room = {
        index: world.size(relation.head_type)
        * (world.size(relation.tail_type) - (relation.head_type == relation.tail_type))
        for index, relation in enumerate(plan)
        if relation.kind == "many_to_many"
    }
    for source in (_draw, _anything):
        # The fullest first: what it cannot take is shared by those that can.
        for turn, index in enumerate(sorted(room, key=lambda i: room[i] - len(pairs[i]))):
            before = len(pairs[index])
            wanted = min(-(-left // (len(room) - turn)), room[index] - before)
            pairs[index] = _grow(pairs[index], before + wanted, partial(source, world, plan[index], random), random)
            left -= len(pairs[index]) - before
    if left:
        raise ConfigurationError(
            f"there is no room for {left} of the triples: ask for fewer triples, more entities or more relations"
        )


def _assemble(
    name: str,
    world: _World,
    plan: list[_Relation],
    pairs: list[Pairs],
    covering: list[Pairs],
    fractions: tuple[float, float],
    random: np.random.Generator,
) -> Graph:
    """Number the entities at random, so that a number tells nothing, and hold triples out that train can spare."""
    count = sum(len(part) for part in pairs)
    table = np.empty((count, 3), dtype=np.int32)
    free = np.ones(count, dtype=bool)
    numbers = random.permutation(world.entities).astype(np.int32)
    start = 0
    for index, part in enumerate(pairs):
        rows = table[start : start + len(part)]
        rows[:, HEAD], rows[:, RELATION], rows[:, TAIL] = (
            numbers[part // world.entities],
            index,
            numbers[part % world.entities],
        )
        free[start : start + max(1, len(covering[index]))] = False
        start += len(part)
    valid, test = (round(fraction * count) for fraction in fractions)
    held_out = random.permutation(np.flatnonzero(free))[: valid + test]
    kept = np.ones(count, dtype=bool)
    kept[held_out] = False
    return Graph(
        name,
        Vocabulary(NumberedNames("e", range(world.entities))),
        Vocabulary(tuple(relation.name for relation in plan)),
        train=table[random.permutation(np.flatnonzero(kept))],
        valid=table[held_out[:valid]],
        test=table[held_out[valid:]],
    )
