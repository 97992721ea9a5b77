"""A seeded generator of graphs of any size, with the patterns that real ones have.

Entities have types; within a type they form communities. A relation leads from one type to another and from each
community to one other community, so that its triples can be learned; who takes part follows Zipf's law.
Work and memory grow with the number of triples only: two million entities and ten million triples are a minute's work.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from fedkge.base.errors import ConfigurationError
from fedkge.graph.graph import HEAD, RELATION, TAIL, Graph, Vocabulary
from fedkge.graph.numbered_names import NumberedNames
from fedkge.graph.synthetic_relations import (
    COMMUNITY_SIZE,
    KINDS,
    Numbers,
    Pairs,
    Relation,
    World,
    draw_anything,
    draw_composed,
    draw_pairs,
    draw_partners,
    draw_symmetric,
    grow,
    pairs_of,
    plan_relations,
    reversed_pairs,
)

__all__ = ["NumberedNames", "synthetic_graph"]

MOST_TYPES = 12


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
    world = World(np.linspace(0, entities, kinds + 1).astype(np.int64), exponent, noise)
    plan = plan_relations(relations, kinds, random)
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
            f"got {triples}, with {held_out:.0%} held out: ask for more triples or fewer entities"
        )


def _shares(relations: int, triples: int, random: np.random.Generator) -> Numbers:
    """How many triples each relation should get beyond the covering ones: Zipf's law in a random order."""
    weights = random.permutation(1.0 / np.arange(2, relations + 2))
    extra = np.floor((triples - len(KINDS) * relations) * weights / weights.sum())
    shares: Numbers = len(KINDS) + extra.astype(np.int64)
    shares[0] += triples - shares.sum()
    return shares


def _cover(world: World, plan: list[Relation], random: np.random.Generator) -> list[Pairs]:
    """Pairs that put every entity into the graph once as a head, dealt over its type's many-to-many relations."""
    covering: list[Pairs] = [np.empty(0, dtype=np.int64) for _ in plan]
    for kind in range(len(world.starts) - 1):
        leading = [i for i, relation in enumerate(plan) if relation.kind == KINDS[0] and relation.head_type == kind]
        for position, index in enumerate(leading):
            relation = plan[index]
            ranks = np.arange(position, world.size(kind), len(leading), dtype=np.int64)
            tails = draw_partners(world, ranks, kind, relation.tail_type, relation.shift, random)
            loops = (tails == ranks) & (relation.tail_type == kind)
            tails[loops] = (tails[loops] + 1) % world.size(kind)
            covering[index] = pairs_of(world, ranks + world.starts[kind], tails + world.starts[relation.tail_type])
    return covering


def _fill(
    world: World, plan: list[Relation], covering: list[Pairs], shares: Numbers, random: np.random.Generator
) -> list[Pairs]:
    """Draw every relation's pairs; what a relation has no room for goes to many-to-many relations."""
    pairs = list(covering)
    targets = [len(cover) + int(share) for cover, share in zip(covering, shares, strict=True)]
    for index in sorted(range(len(plan)), key=lambda i: len(plan[i].sources)):
        relation, target = plan[index], targets[index]
        if relation.kind == "one_to_many":
            pairs[index] = draw_pairs(world, relation, random, target)
        elif relation.kind == "symmetric":
            pairs[index] = draw_symmetric(world, relation, random, target)
        elif relation.kind == "inverse":
            pairs[index] = reversed_pairs(world, random.permutation(pairs[relation.sources[0]])[:target])
        else:
            draw = (
                draw_composed(world, pairs, relation, random)
                if relation.sources
                else partial(draw_pairs, world, relation, random)
            )
            pairs[index] = grow(pairs[index], target, draw, random)
        if len(pairs[index]) == 0:
            pairs[index] = grow(pairs[index], 1, partial(draw_anything, world, relation, random), random)
    _spend(world, plan, pairs, sum(targets) - sum(len(part) for part in pairs), random)
    return pairs


def _spend(world: World, plan: list[Relation], pairs: list[Pairs], left: int, random: np.random.Generator) -> None:
    """Put `left` more pairs into the many-to-many relations: as they come if possible, else any of the right types."""
    room = {
        index: world.size(relation.head_type)
        * (world.size(relation.tail_type) - (relation.head_type == relation.tail_type))
        for index, relation in enumerate(plan)
        if relation.kind == "many_to_many"
    }
    for source in (draw_pairs, draw_anything):
        # The fullest first: what it cannot take is shared by those that can.
        for turn, index in enumerate(sorted(room, key=lambda i: room[i] - len(pairs[i]))):
            before = len(pairs[index])
            wanted = min(-(-left // (len(room) - turn)), room[index] - before)
            pairs[index] = grow(pairs[index], before + wanted, partial(source, world, plan[index], random), random)
            left -= len(pairs[index]) - before
    if left:
        raise ConfigurationError(
            f"there is no room for {left} of the triples: ask for fewer triples, more entities or more relations"
        )


def _assemble(
    name: str,
    world: World,
    plan: list[Relation],
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
