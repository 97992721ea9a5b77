"""The numbers of a model: its two tables, and gradients that touch only some of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.models.kernel import kernel

Table: TypeAlias = NDArray[np.floating[Any]]
"""Rows of shape (names, width); float32 in use, float64 in tests."""

Ids: TypeAlias = NDArray[np.int32]


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Entity rows and relation rows of one model. The arrays are updated in place by training.

    >>> tables = Tables(np.zeros((3, 2), np.float32), np.zeros((1, 2), np.float32))
    >>> tables.copy().entities.shape
    (3, 2)
    """

    entities: Table
    relations: Table

    def copy(self) -> Tables:
        """Tables of the same numbers that share no memory with these."""
        return Tables(self.entities.copy(), self.relations.copy())

    def is_finite(self) -> bool:
        """Whether every number is finite."""
        return bool(np.isfinite(self.entities).all() and np.isfinite(self.relations).all())


@kernel
def _touch(ids, slots, rows, values, count):
    for i in range(ids.shape[0]):
        row = ids[i]
        if slots[row] < 0:
            slots[row] = count
            rows[count] = row
            for k in range(values.shape[1]):
                values[count, k] = 0
            count += 1
    return count


@kernel
def _forget(rows, count, slots):
    for i in range(count):
        slots[rows[i]] = -1


class RowGradient:
    """The gradient of a table, kept only for the rows that a step touches, each row once.

    `slots[row]` is where the row's gradient stands in `values`, or -1; a row that occurs several times in a
    step is summed in one place, so clipping and optimisers see coalesced rows.

    >>> gradient = RowGradient(rows=5, width=2, capacity=4)
    >>> gradient.touch(np.array([3, 1, 3], np.int32))
    >>> gradient.touched.tolist(), gradient.slots.tolist()
    ([3, 1], [-1, 1, -1, 0, -1])
    """

    def __init__(self, rows: int, width: int, capacity: int, dtype: type[np.floating[Any]] = np.float32) -> None:
        capacity = min(rows, capacity)
        self.slots: Ids = np.full(rows, -1, dtype=np.int32)
        self.values: Table = np.zeros((capacity, width), dtype=dtype)
        self.count = 0
        self._rows: Ids = np.zeros(capacity, dtype=np.int32)

    @classmethod
    def of(cls, table: Table, capacity: int) -> RowGradient:
        """A gradient for `table` with room for `capacity` distinct rows."""
        return cls(table.shape[0], table.shape[1], capacity, table.dtype.type)

    def touch(self, ids: Ids) -> None:
        """Give every id a slot, zeroed when new."""
        self.count = _touch(ids, self.slots, self._rows, self.values, self.count)

    @property
    def touched(self) -> Ids:
        """The distinct rows with a slot, in slot order."""
        return self._rows[: self.count]

    def clear(self) -> None:
        """Forget all rows, ready for the next step."""
        _forget(self._rows, self.count, self.slots)
        self.count = 0


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """Row gradients of both tables."""

    entities: RowGradient
    relations: RowGradient

    def clear(self) -> None:
        """Forget all rows of both."""
        self.entities.clear()
        self.relations.clear()
