"""The two tables of counts that a client releases, and how they are drawn from its triples.

The profile counts how often each entity is the tail, and the head, of each relation. Types are groups of entities with
like profiles, found in the noisy profile. The typed table counts the same answers apart for each type of the entity at
the triple's other end: which tails do heads of this type have?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import RunError
from fedkge.base.short_repr import short_repr
from fedkge.defences.counts.count_prior import CountPrior
from fedkge.defences.counts.denoising import Profile
from fedkge.defences.counts.types import find_types
from fedkge.defences.release import Release, Rows
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.mechanisms.noise import NoiseSource

Types = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CountPlan:
    """How a client counts: the scales of both tables' noise, and how many types there are.

    >>> CountPlan(profile_scale=0.5, typed_scale=1.0, types=8).types
    8
    """

    profile_scale: float
    typed_scale: float
    types: int


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class ReleasedCounts(Release):
    """Everything that the counts tell, noise included: whoever has a client's model may have it."""

    entities: int
    relations: int
    profile: NoisyCounts
    types: Types
    """The type of each entity."""
    number_of_types: int
    typed: NoisyCounts

    @classmethod
    def draw(
        cls, triples: Triples, entities: int, relations: int, plan: CountPlan, source: NoiseSource
    ) -> ReleasedCounts:
        """Count distinct triples. The types come from the noisy profile alone, so they are post-processing."""
        distinct = np.unique(triples, axis=0).astype(np.int64)
        size = 2 * relations * entities
        profile = NoisyCounts.release(profile_cells(distinct, entities, relations), size, plan.profile_scale, source)
        types = find_types(Profile.of(profile, entities), plan.types)
        cells = typed_cells(distinct, types, plan.types, entities, relations)
        typed = NoisyCounts.release(cells, plan.types * size, plan.typed_scale, source)
        return cls(entities, relations, profile, types, plan.types, typed)

    @property
    def profile_expected(self) -> Profile:
        """The profile without its noise, as well as that can be told."""
        return Profile.of(self.profile, self.entities)

    def prior(self, weight: float) -> CountPrior:
        """The log-probability of answers by these counts."""
        return CountPrior(self, weight)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The counts as plain arrays, for a file."""
        tables = {"profile": self.profile, "typed": self.typed}
        return {
            "sizes": np.array([self.entities, self.relations, self.number_of_types], np.int64),
            "types": self.types,
            **{f"{name}_keys": table.keys for name, table in tables.items()},
            **{f"{name}_values": table.values for name, table in tables.items()},
            **{f"{name}_scale": np.array([table.scale], np.float64) for name, table in tables.items()},
            **{f"{name}_threshold": np.array([table.threshold], np.int64) for name, table in tables.items()},
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ReleasedCounts:
        """The counts that `arrays` was made from."""
        try:
            entities, relations, types = (int(number) for number in arrays["sizes"])
            sizes = {"profile": 2 * relations * entities, "typed": 2 * relations * entities * types}
            tables = {
                name: NoisyCounts(
                    size,
                    float(arrays[f"{name}_scale"][0]),
                    int(arrays[f"{name}_threshold"][0]),
                    arrays[f"{name}_keys"],
                    arrays[f"{name}_values"],
                )
                for name, size in sizes.items()
            }
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise RunError(f"expected the arrays of noisy counts, got {sorted(arrays)}: {error}") from error
        return cls(entities, relations, tables["profile"], arrays["types"], types, tables["typed"])

    def renumbered(self, entities: Rows, relations: Rows) -> ReleasedCounts:
        """The same under other numbers: entity i is the old `entities[i]`, relation k the old `relations[k]`.

        Two new ones may have been the same old one; then both have its counts.
        """
        sizes = (self.entities, self.relations)
        return ReleasedCounts(
            len(entities),
            len(relations),
            _renumbered(self.profile, 1, sizes, entities, relations),
            self.types[entities],
            self.number_of_types,
            _renumbered(self.typed, self.number_of_types, sizes, entities, relations),
        )


def _renumbered(table: NoisyCounts, types: int, sizes: tuple[int, int], entities: Rows, relations: Rows) -> NoisyCounts:
    lines, old_entities = np.divmod(table.keys, sizes[0])
    blocks, kinds = np.divmod(lines, types)
    sides, old_relations = np.divmod(blocks, sizes[1])
    places, new_entities = matches(old_entities, entities)
    again, new_relations = matches(old_relations[places], relations)
    places, new_entities = places[again], new_entities[again]
    keys = ((sides[places] * len(relations) + new_relations) * types + kinds[places]) * len(entities) + new_entities
    order = np.argsort(keys)
    size = 2 * len(relations) * types * len(entities)
    return NoisyCounts(size, table.scale, table.threshold, keys[order], table.values[places][order])


def matches(old: NDArray[np.int64], rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every pair of a place in `old` and a new number whose old one stands there.

    >>> [found.tolist() for found in matches(np.array([7, 9, 7]), np.array([9, 7, 7]))]
    [[0, 0, 1, 2, 2], [1, 2, 0, 1, 2]]
    """
    order = np.argsort(rows, kind="stable")
    first, last = (np.searchsorted(rows[order], old, side) for side in ("left", "right"))
    lengths = last - first
    places = np.repeat(np.arange(len(old)), lengths)
    within = np.arange(len(places)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return places, order[np.repeat(first, lengths) + within]


def profile_cells(triples: NDArray[np.int64], entities: int, relations: int) -> NDArray[np.int64]:
    """The two cells of each triple: its tail as a tail of the relation, its head as a head of it.

    >>> profile_cells(np.array([[4, 1, 2]]), entities=5, relations=3).tolist()
    [[7, 24]]
    """
    kinds = triples[:, RELATION]
    return np.column_stack(
        (kinds * entities + triples[:, TAIL], (relations + kinds) * entities + triples[:, HEAD])
    ).astype(np.int64)


def typed_cells(
    triples: NDArray[np.int64], types: Types, number: int, entities: int, relations: int
) -> NDArray[np.int64]:
    """The same two cells, apart for each type of the triple's other end.

    >>> typed_cells(np.array([[4, 1, 2]]), np.array([0, 0, 1, 0, 1], np.int32), 2, entities=5, relations=3).tolist()
    [[17, 49]]
    """
    heads, kinds, tails = triples[:, HEAD], triples[:, RELATION], triples[:, TAIL]
    as_tail = (kinds * number + types[heads]) * entities + tails
    as_head = ((relations + kinds) * number + types[tails]) * entities + heads
    return np.column_stack((as_tail, as_head)).astype(np.int64)
