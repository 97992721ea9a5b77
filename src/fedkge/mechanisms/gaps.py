"""The input of propose-test-release: entity rows in the order of their gradients' norms, and the gaps between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.selection import Touched, rows_outside


def candidates(batch: int, table: int) -> range:
    """The numbers of rows that may be released, J: from the public batch size to twice that, and not the whole table.

    >>> candidates(4, 7)
    range(4, 7)
    """
    numbers = range(max(1, batch), min(2 * batch, table - 1) + 1)
    if not numbers:
        raise PrivacyError(
            f"expected a batch smaller than the {table} entity rows to test a gap after row {batch}: "
            "use a smaller batch or another selection"
        )
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """The rows of positive norm, largest first and ties by row number; all further rows have norm 0, by row number.

    >>> touched = Touched(np.array([1, 2, 3], np.int32), np.ones(3, np.int64), np.array([2.0, 0.0, 5.0]), table=9)
    >>> ordered = Ordered.of(touched)
    >>> ordered.rows.tolist(), ordered.gaps(range(1, 5)).tolist(), ordered.top(4).tolist()
    ([3, 1], [3.0, 2.0, 0.0, 0.0], [0, 1, 2, 3])
    """

    rows: NDArray[np.int32]
    norms: NDArray[np.float64]

    @classmethod
    def of(cls, touched: Touched) -> Ordered:
        """Sort what a batch touches; rows that it does not touch cost nothing."""
        positive = touched.norms > 0
        rows, norms = touched.rows[positive], touched.norms[positive]
        order = np.lexsort((rows, -norms))
        return cls(rows[order], norms[order])

    def gaps(self, numbers: range) -> NDArray[np.float64]:
        """For each number j, how far the norm falls from the row at place j to the next (places count from 1)."""
        norms = np.zeros(len(numbers) + 1)
        found = self.norms[numbers.start - 1 : numbers.stop]
        norms[: len(found)] = found
        return norms[:-1] - norms[1:]

    def top(self, number: int) -> NDArray[np.int32]:
        """The first so many rows, sorted by row number."""
        missing = np.arange(max(0, number - len(self.rows)))
        return np.sort(np.concatenate((self.rows[:number], rows_outside(self.rows, missing))))
