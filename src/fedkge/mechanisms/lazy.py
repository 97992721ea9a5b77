"""Noise that is drawn when a row is next read: the same law as noise in every step, at the price of the rows in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.noise import NoiseSource

AT_ONCE = 512
"""Rows that are settled at a time: their noise stays in the processor's cache."""


class LazyNoise:
    """Counts the steps of dense noise that each row of a table still owes. Exact for SGD only.

    Guarantee: as dense noise (docs/proofs/dense.md), provided that a row is settled before it is read, and all rows
    before anything is uploaded: k steps of SGD add k independent N(0, d**2) to a row, which is one N(0, k d**2). Adam
    divides each step's noise by what it saw, so there it must be drawn in every step.

    >>> lazy, table = LazyNoise(rows=3), np.zeros((3, 2))
    >>> lazy.owe(); lazy.owe(rows_noised_now=np.array([0]))
    >>> lazy.owed.tolist()
    [1, 2, 2]
    >>> lazy.settle(np.array([1]), table, deviation_per_step=0.1, source=NoiseSource.research(0))
    >>> lazy.owed.tolist(), bool((table[1] != 0).all())
    ([1, 0, 2], True)
    """

    def __init__(self, rows: int) -> None:
        self._steps = 0
        self._paid = np.zeros(rows, dtype=np.int64)
        self._deviation: float | None = None

    @property
    def owed(self) -> NDArray[np.int64]:
        """The steps of noise that each row owes."""
        return self._steps - self._paid

    def owe(self, rows_noised_now: NDArray[np.integer[Any]] | None = None) -> None:
        """Count one step: every row owes its noise, except the distinct rows that the step itself has noised."""
        self._steps += 1
        if rows_noised_now is not None:
            self._paid[rows_noised_now] += 1

    def settle(
        self,
        rows: NDArray[np.integer[Any]],
        table: NDArray[np.floating[Any]],
        deviation_per_step: float,
        source: NoiseSource,
    ) -> None:
        """Add to these rows of `table`, in place, all the noise that they owe.

        `deviation_per_step` is what one step adds to a number of the table: learning rate times deviation over batch.
        It may change only right after `settle_all`, when nothing is owed.
        """
        if self._deviation not in {None, deviation_per_step}:
            raise PrivacyError(
                f"expected noise of {self._deviation} per step, got {deviation_per_step}: settle all rows first"
            )
        self._deviation = deviation_per_step
        rows = np.unique(rows)
        owing = rows[self._paid[rows] < self._steps]
        for first in range(0, len(owing), AT_ONCE):
            part = owing[first : first + AT_ONCE]
            noise = source.gaussian((len(part), table.shape[1]), deviation_per_step)
            noise *= np.sqrt(self._steps - self._paid[part])[:, np.newaxis]
            table[part] += noise
            self._paid[part] = self._steps

    def settle_all(self, table: NDArray[np.floating[Any]], deviation_per_step: float, source: NoiseSource) -> None:
        """Add all the noise that is owed: before an upload, an evaluation, or a change of the noise."""
        self.settle(np.arange(len(self._paid)), table, deviation_per_step, source)
        self._deviation = None
