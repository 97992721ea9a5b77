"""One relation of a synthetic graph: which types it joins, and how its (head, tail) pairs are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

KINDS = ("many_to_many", "one_to_many", "symmetric", "inverse", "composed")
"""Relation number i is of kind i modulo 5; the last two are made from the first one's triples."""

COMMUNITY_SIZE = 16
ONE_OF = 4  # one of four members of a community can be a head in a one-to-many relation
ROUNDS = 12
MOST_CELLS = 1 << 22

Numbers: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = NDArray[np.int64]
"""Distinct (head, tail) pairs of one relation, each as one number: head * entities + tail."""

Draw: TypeAlias = Callable[[int], Pairs]
"""Makes about as many candidate pairs as asked; they may repeat."""


@dataclass(frozen=True, slots=True)
class World:
    """Where each type's entities begin (by number before shuffling), and how unequal they are."""

    starts: Numbers
    exponent: float
    noise: float

    @property
    def entities(self) -> int:
        """How many there are of all types."""
        return int(self.starts[-1])

    def size(self, kind: int) -> int:
        """How many entities are of this type."""
        return int(self.starts[kind + 1] - self.starts[kind])

    def communities(self, kind: int) -> int:
        """Into how many communities they fall."""
        return max(1, self.size(kind) // COMMUNITY_SIZE)


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation's plan: the types it joins, how far it shifts communities, and what it is made from."""

    kind: str
    name: str
    head_type: int
    tail_type: int
    shift: int
    sources: tuple[int, ...] = ()


def plan_relations(relations: int, types: int, random: np.random.Generator) -> list[Relation]:
    """Each group of five relations starts from one type; see KINDS."""

    def types_of(group: int) -> tuple[int, int]:
        return group % types, (group + 1 + group // types) % types

    plan = []
    for index in range(relations):
        group, kind = index // len(KINDS), KINDS[index % len(KINDS)]
        base, shift = group * len(KINDS), int(random.integers(1, 1 << 30))
        head, tail = types_of(group)
        if kind == "symmetric":
            plan.append(Relation(kind, f"r{index}_symmetric", head, head, 0))
        elif kind == "inverse":
            plan.append(Relation(kind, f"r{index}_inverse_of_r{base}", tail, head, 0, (base,)))
        elif kind == "composed":
            second = tail * len(KINDS)
            plan.append(Relation(kind, f"r{index}_r{base}_then_r{second}", head, types_of(tail)[1], 0, (base, second)))
        else:
            plan.append(Relation(kind, f"r{index}_{kind}", head, tail, shift))
    return plan


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


def draw_partners(
    world: World, ranks: Numbers, kind: int, other: int, shift: int, random: np.random.Generator, one_of: int = 1
) -> Numbers:
    """For entities of type `kind` given by rank, a rank of type `other` out of the community that belongs to theirs.

    Only the first member out of every `one_of` is ever drawn.
    """
    size, communities = world.size(other), world.communities(other)
    community = (ranks % world.communities(kind) + shift) % communities
    members = (size - 1 - community) // (communities * one_of) + 1
    partners: Numbers = community + communities * one_of * _zipf(members, len(ranks), world.exponent, random)
    return partners


def draw_pairs(world: World, relation: Relation, random: np.random.Generator, count: int) -> Pairs:
    """Candidate pairs of a relation that is not made from others; they may repeat."""
    head_start, tail_start = world.starts[relation.head_type], world.starts[relation.tail_type]
    if relation.kind == "one_to_many":
        tails = random.permutation(world.size(relation.tail_type))[:count]
        heads = draw_partners(world, tails, relation.tail_type, relation.head_type, relation.shift, random, ONE_OF)
    else:
        heads = _zipf(world.size(relation.head_type), count, world.exponent, random)
        tails = draw_partners(world, heads, relation.head_type, relation.tail_type, relation.shift, random)
    if relation.kind == "many_to_many":
        stray = np.flatnonzero(random.random(count) < world.noise)
        tails[stray] = _zipf(world.size(relation.tail_type), len(stray), world.exponent, random)
    return pairs_of(world, heads + head_start, tails + tail_start)


def pairs_of(world: World, heads: Numbers, tails: Numbers) -> Pairs:
    """Heads and tails as pairs; self-loops are left out."""
    proper = heads != tails
    pairs: Pairs = heads[proper] * world.entities + tails[proper]
    return pairs


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


def grow(pairs: Pairs, target: int, draw: Draw, random: np.random.Generator) -> Pairs:
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


def reversed_pairs(world: World, pairs: Pairs) -> Pairs:
    """Each pair the other way round."""
    return pairs % world.entities * world.entities + pairs // world.entities


def draw_symmetric(world: World, relation: Relation, random: np.random.Generator, target: int) -> Pairs:
    """Half as many pairs as asked, and each of them the other way round."""

    def draw(count: int) -> Pairs:
        drawn = draw_pairs(world, relation, random, count)
        return np.minimum(drawn, reversed_pairs(world, drawn))

    half = grow(np.empty(0, dtype=np.int64), target // 2, draw, random)
    return np.concatenate([half, reversed_pairs(world, half)])


def draw_composed(world: World, pairs: list[Pairs], relation: Relation, random: np.random.Generator) -> Draw:
    """Draws pairs (a, c) for which some b has (a, b) in the first source and (b, c) in the second."""
    first, second = pairs[relation.sources[0]], np.sort(pairs[relation.sources[1]])
    starts = second // world.entities

    def draw(count: int) -> Pairs:
        chosen = first[random.integers(len(first), size=count)]
        middle = chosen % world.entities
        low, high = np.searchsorted(starts, middle, "left"), np.searchsorted(starts, middle, "right")
        found = high > low
        step = low[found] + (random.random(int(found.sum())) * (high - low)[found]).astype(np.int64)
        return pairs_of(world, chosen[found] // world.entities, second[step] % world.entities)

    return draw


def draw_anything(world: World, relation: Relation, random: np.random.Generator, count: int) -> Pairs:
    """Pairs of the right types and nothing else; all that there are when they are few."""
    rows, columns = world.size(relation.head_type), world.size(relation.tail_type)
    cells = np.arange(rows * columns) if rows * columns <= MOST_CELLS else random.integers(rows * columns, size=count)
    heads, tails = (
        cells // columns + world.starts[relation.head_type],
        cells % columns + world.starts[relation.tail_type],
    )
    return pairs_of(world, heads, tails)
