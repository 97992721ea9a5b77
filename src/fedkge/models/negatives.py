"""Negative triples: corruptions of one side, drawn for each triple or shared by a group of triples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError
from fedkge.graph import HEAD, TAIL, Side, Triples, no_triples
from fedkge.models.scorer import Known
from fedkge.models.tables import Ids

Corrupt: TypeAlias = Literal["tail", "head", "both"]

REDRAWS = 20
"""How often a corruption that is a known triple is drawn again before it is let stand."""


@dataclass(frozen=True)
class Negatives:
    """How negatives are drawn: `count` per triple, shared by `group_size` consecutive triples.

    With `corrupt` "both" the sides take turns from step to step, as in the RotatE authors' code.
    With `known` triples, corruptions that are known are drawn again (groups of one only: in a larger group what
    is false for one triple may be true for another).

    >>> negatives = Negatives(entities=10, count=4, group_size=2)
    >>> negatives.draw(np.zeros((5, 3), np.int32), "tail", np.random.default_rng(0)).shape
    (3, 4)
    """

    entities: int
    count: int
    group_size: int = 1
    corrupt: Corrupt = "tail"
    known: Triples | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or self.group_size < 1:
            raise ConfigurationError(
                f"negatives: expected a count and a group size of at least 1, got {self.count} and {self.group_size}"
            )
        if self.known is not None and self.group_size != 1:
            raise ConfigurationError(
                f"filtered negatives need groups of one, got groups of {self.group_size}: "
                "set negative-group to 1 or filter-negatives to false"
            )

    def side(self, step: int) -> Side:
        """The side that step number `step` corrupts."""
        if self.corrupt == "both":
            return "tail" if step % 2 == 0 else "head"
        return self.corrupt

    def draw(self, triples: Triples, side: Side, generator: np.random.Generator) -> Ids:
        """Corrupting entities for a batch: shape (groups, count), uniform over the entities."""
        groups = -(-len(triples) // self.group_size)
        ids = generator.integers(0, self.entities, size=(groups, self.count), dtype=np.int32)
        if self.known is not None:
            self._redraw_known(ids, triples, side, generator)
        return ids

    def _redraw_known(self, ids: Ids, triples: Triples, side: Side, generator: np.random.Generator) -> None:
        known = self._known_keys[side]
        base = self._base_keys(triples, side)[:, None]
        for _ in range(REDRAWS):
            keys = base + ids
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            bad = known[place] == keys
            if not bad.any():
                return
            ids[bad] = generator.integers(0, self.entities, size=int(bad.sum()), dtype=np.int32)

    def _base_keys(self, triples: Triples, side: Side) -> NDArray[np.int64]:
        known = Known.of(triples, side)
        return (known.relations.astype(np.int64) * self.entities + known.anchors) * self.entities

    @cached_property
    def _known_keys(self) -> dict[Side, NDArray[np.int64]]:
        known = no_triples() if self.known is None else self.known
        columns: dict[Side, int] = {"tail": TAIL, "head": HEAD}
        return {side: np.unique(self._base_keys(known, side) + known[:, column]) for side, column in columns.items()}
