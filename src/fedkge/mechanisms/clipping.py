"""Clipping: the bound on the change by one triple, and the sum of gradients that respects it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.base.short_repr import short_repr
from fedkge.mechanisms.compiled import strict, strict_sum

SHRINK = 1 - 2.0**-36
"""Clipped norms stay this far below their bound: more than the rounding of a norm over 100,000 numbers."""
LEAST = 1e-280
"""Below this, a sum of squares has lost digits: such a gradient counts as zero."""

_NO_SLOTS: NDArray[np.int32] = np.empty(0, dtype=np.int32)


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class PerTriple:
    """The gradients of a batch, one triple apart from the other.

    Triple i owns the rows `starts[i]:starts[i + 1]` of `entity_values`, which are gradients of the table rows
    `entity_rows`, and the row i of `relation_values`. The table rows of one triple are distinct: the caller
    value sums a row that a triple touches twice (a self-loop, a negative equal to its head) in one place.
    """

    entity_values: NDArray[np.floating[Any]]
    entity_rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    relation_values: NDArray[np.floating[Any]]
    relation_rows: NDArray[np.int32]

    def check(self) -> None:
        """Refuse shapes that do not fit and triples that own a row twice; too slow for every step, meant for tests.

        >>> rows = np.array([4, 4], np.int32)
        >>> PerTriple(np.ones((2, 3)), rows, np.array([0, 2]), np.ones((1, 3)), rows[:1]).check()
        Traceback (most recent call last):
        fedkge.base.errors.PrivacyError: expected distinct rows, got row 4 twice for triple 0: sum them before clipping
        """
        triples, local = len(self.relation_rows), len(self.entity_rows)
        spans = len(self.starts) == triples + 1 and self.starts[0] == 0 and self.starts[-1] == local
        if not spans or (np.diff(self.starts) < 0).any():
            raise PrivacyError(f"expected starts from 0 to {local} for {triples} triples, got {self.starts}")
        if len(self.entity_values) != local or len(self.relation_values) != triples:
            raise PrivacyError("expected one row of values for each row number")
        for i in range(triples):
            rows, times = np.unique(self.entity_rows[self.starts[i] : self.starts[i + 1]], return_counts=True)
            if (times > 1).any():
                row = rows[times > 1][0]
                raise PrivacyError(
                    f"expected distinct rows, got row {row} twice for triple {i}: sum them before clipping"
                )


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds each triple's gradient: its norm over all its rows to `joint`, then each entity row to `row`.

    With `normalise`, every gradient is scaled to the norm `joint`, not only those above it; the bound is the same.

    Guarantees:
        The sum over a batch changes by at most `sensitivity` (in Euclidean norm over both tables) when one triple is
        added or removed, whatever the embeddings are; the row clip can only lower the change. A gradient with a NaN or
        an infinity, or of norm zero, contributes nothing. Proof: docs/proofs/dense.md; for the two sensitivities of
        row norms docs/proofs/ptr.md.

    >>> clip = Clip(joint=1.2, row=0.8)
    >>> clip.sensitivity, clip.gap_sensitivity, round(clip.range_sensitivity, 6)
    (1.2, 1.6, 2.4)
    """

    joint: float
    row: float | None = None
    normalise: bool = False

    def __post_init__(self) -> None:
        for name, bound in (("joint", self.joint), ("row", self.row_bound)):
            if not 1e-100 < bound < 1e100:
                raise PrivacyError(f"expected a positive {name} clip, got {bound}")

    @property
    def row_bound(self) -> float:
        """The largest norm of an entity row of one triple: the smaller of `row` and `joint`."""
        return self.joint if self.row is None else min(self.row, self.joint)

    @property
    def sensitivity(self) -> float:
        """How far one triple moves the clipped sum over both tables (C1)."""
        return self.joint

    @property
    def gap_sensitivity(self) -> float:
        """How far one triple moves a gap between neighbours among the sorted norms of entity rows (D2)."""
        return min(2 * self.row_bound, math.sqrt(2) * self.joint)

    @property
    def guess_scale(self) -> float:
        """The scale of the Gumbel noise on gaps at noise multiplier 1 (2 C2)."""
        return 2 * self.row_bound

    @property
    def range_sensitivity(self) -> float:
        """How far one triple moves two gaps against each other (3 C2)."""
        return 3 * self.row_bound

    def add_to(self, per_triple: PerTriple, entities: NDArray[np.float64], relations: NDArray[np.float64]) -> None:
        """Add every clipped gradient to the sums `entities` and `relations`, one row for each row of the tables.

        >>> rows = np.array([0, 1], np.int32)
        >>> batch = PerTriple(np.array([[3.0], [0.0]]), rows, np.array([0, 2]), np.array([[4.0]]), rows[:1])
        >>> entities, relations = np.zeros((2, 1)), np.zeros((1, 1))
        >>> Clip(joint=1.0).add_to(batch, entities, relations)
        >>> entities.round(6).tolist(), relations.round(6).tolist()
        ([[0.6], [0.0]], [[0.8]])
        """
        self._add(per_triple, _NO_SLOTS, False, entities, relations)

    def add_to_slots(
        self,
        per_triple: PerTriple,
        slots: NDArray[np.int32],
        entities: NDArray[np.float64],
        relations: NDArray[np.float64],
    ) -> None:
        """As `add_to`, where the entity row r is summed in `entities[slots[r]]`; rows of the batch all have slots.

        >>> rows = np.array([7, 2], np.int32)
        >>> batch = PerTriple(np.array([[3.0], [0.0]]), rows, np.array([0, 2]), np.array([[4.0]]), rows[:1] * 0)
        >>> slots = np.full(8, -1, np.int32)
        >>> slots[rows] = [0, 1]
        >>> entities = np.zeros((2, 1))
        >>> Clip(joint=1.0).add_to_slots(batch, slots, entities, np.zeros((1, 1)))
        >>> entities.round(6).tolist()
        [[0.6], [0.0]]
        """
        self._add(per_triple, slots, True, entities, relations)

    def _add(
        self,
        per_triple: PerTriple,
        slots: NDArray[np.int32],
        by_slot: bool,
        entities: NDArray[np.float64],
        relations: NDArray[np.float64],
    ) -> None:
        if entities.dtype != np.float64 or relations.dtype != np.float64:
            raise PrivacyError(f"expected sums in float64, got {entities.dtype} and {relations.dtype}")
        if not _add_clipped(
            per_triple.entity_values,
            per_triple.entity_rows,
            per_triple.starts,
            per_triple.relation_values,
            per_triple.relation_rows,
            slots,
            by_slot,
            self.joint * SHRINK,
            math.inf if self.row is None else self.row * SHRINK,
            self.normalise,
            entities,
            relations,
        ):
            raise PrivacyError(
                "expected row numbers of these tables (or rows with a slot), got others; their gradients were not added"
            )


@strict_sum
def _squares(row: NDArray[np.floating[Any]]) -> float:
    total = 0.0
    for k in range(row.shape[0]):
        number = np.float64(row[k])
        total += number * number
    return total


@strict
def _add_scaled(row: NDArray[np.floating[Any]], scale: float, into: NDArray[np.float64]) -> None:
    for k in range(row.shape[0]):
        into[k] += scale * np.float64(row[k])


@strict
def _add_clipped(
    entity_values: NDArray[np.floating[Any]],
    entity_rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    relation_values: NDArray[np.floating[Any]],
    relation_rows: NDArray[np.int32],
    slots: NDArray[np.int32],
    by_slot: bool,
    joint: float,
    row_bound: float,
    normalise: bool,
    entities: NDArray[np.float64],
    relations: NDArray[np.float64],
) -> bool:
    """Clip and add triple by triple; whether every row had a place. A row without one is left out.

    Sums must not overlap the values. NaN or infinity anywhere in a triple makes its sum of squares not finite.
    """
    good = True
    for i in range(relation_rows.shape[0]):
        squares = _squares(relation_values[i])
        for j in range(starts[i], starts[i + 1]):
            squares += _squares(entity_values[j])
        if not LEAST < squares < np.inf:
            continue
        norm = math.sqrt(squares)
        scale = joint / norm if normalise or norm > joint else 1.0
        for j in range(starts[i], starts[i + 1]):
            place = slots[entity_rows[j]] if by_slot else entity_rows[j]
            if not 0 <= place < entities.shape[0]:
                good = False
                continue
            row_scale = scale
            if row_bound < joint:
                row_norm = scale * math.sqrt(_squares(entity_values[j]))
                row_scale = scale * row_bound / row_norm if row_norm > row_bound else scale
            _add_scaled(entity_values[j], row_scale, entities[place])
        if 0 <= relation_rows[i] < relations.shape[0]:
            _add_scaled(relation_values[i], scale, relations[relation_rows[i]])
        else:
            good = False
    return good
