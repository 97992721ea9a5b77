"""Which entity rows a step releases: what a selection sees, what it answers, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedkge.errors import PrivacyError
from fedkge.mechanisms.clipping import PerTriple
from fedkge.mechanisms.compiled import strict_sum
from fedkge.mechanisms.events import Event
from fedkge.mechanisms.noise import NoiseSource


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The entity rows that a batch's positive triples touch, each once, out of a table of so many rows.

    `counts` holds the triples per row (a self-loop counts once), `norms` the norms of the summed clipped gradients.
    All other rows have count 0 and norm 0. This is private: it is seen by selections only.
    """

    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    norms: NDArray[np.float64]
    table: int

    @classmethod
    def of(
        cls,
        per_triple: PerTriple,
        entities: NDArray[np.float64],
        table: int,
        slots: NDArray[np.int32] | None = None,
    ) -> Touched:
        """What the batch touches, with norms read from its clipped sum (at `slots[row]`, where there are slots).

        Sensitivities of counts and norms allow for two rows per triple, its head and its tail: more are refused.

        >>> rows = np.array([3, 1, 3], np.int32)
        >>> batch = PerTriple(np.ones((3, 1)), rows, np.array([0, 2, 3]), np.ones((2, 1)), rows[:2])
        >>> touched = Touched.of(batch, np.array([[0.0], [1.0], [0.0], [2.0]]), table=4)
        >>> touched.rows.tolist(), touched.counts.tolist(), touched.norms.tolist()
        ([1, 3], [1, 2], [1.0, 2.0])
        """
        most = int(np.diff(per_triple.starts).max(initial=0))
        if most > 2:
            raise PrivacyError(
                f"expected a head and a tail per triple to select rows by, got {most} entity rows: "
                "keep negatives out of the clipped gradient, or use dense noise"
            )
        rows, counts = np.unique(per_triple.entity_rows, return_counts=True)
        return cls(rows, counts, _norms(entities, rows if slots is None else slots[rows]), table)


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The rows to release, sorted and distinct; `passed` says whether a test was passed, where there is one."""

    rows: NDArray[np.int32]
    passed: bool | None = None


class Selection(Protocol):
    """A private choice of entity rows. Relation rows are always released, all of them, with noise."""

    @property
    def name(self) -> str:
        """The name of its option value."""
        ...

    @property
    def is_private(self) -> bool:
        """Whether its event is a proved bound; False for what is kept only to reproduce a paper."""
        ...

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        """Choose the rows of one step."""
        ...

    def event(self, rate: float, multiplier: float) -> Event:
        """What the step costs: this choice and the release with `multiplier`, on one Poisson sample at `rate`."""
        ...


def rows_outside(rows: NDArray[np.int32], ranks: NDArray[np.int64]) -> NDArray[np.int32]:
    """The rows at these ranks (from 0, by row number) among all rows that are not in `rows`, which are distinct.

    >>> rows_outside(np.array([3, 0], np.int32), np.array([0, 1, 2])).tolist()
    [1, 2, 4]
    """
    ordered = np.sort(rows)
    outside_below = ordered - np.arange(len(ordered))
    skipped = np.searchsorted(outside_below, ranks, side="right")
    return (ranks + skipped).astype(np.int32)


@strict_sum
def _norms(values: NDArray[np.float64], places: NDArray[np.int32]) -> NDArray[np.float64]:
    norms = np.empty(places.shape[0])
    for i in range(places.shape[0]):
        total = 0.0
        for k in range(values.shape[1]):
            total += values[places[i], k] ** 2
        norms[i] = np.sqrt(total)
    return norms
