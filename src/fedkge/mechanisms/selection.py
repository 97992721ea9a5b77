"""The choice of entity rows that a step releases: the input of a selection, its answer and its cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.mechanisms.clipping import Clip
from fedkge.mechanisms.compiled import strict, strict_sum
from fedkge.mechanisms.events import Event
from fedkge.mechanisms.noise import NoiseSource


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The entity rows that a batch's positive triples touch, each once, out of a table of so many rows.

    `counts` holds the triples per row (a self-loop counts once), `norms` the norms of the summed clipped gradients.
    All other rows have count 0 and norm 0. This is private: it is seen by selections only.
    """

    count_sensitivity: ClassVar[float] = math.sqrt(2)
    """How far one triple moves all counts, in Euclidean norm: it raises those of at most two rows by one."""
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    norms: NDArray[np.float64]
    table: int

    @classmethod
    def of_sums(
        cls,
        triples: NDArray[np.int32],
        rows: NDArray[np.int32],
        slots: NDArray[np.int32],
        values: NDArray[np.float64],
        table: int,
    ) -> Touched:
        """What a batch touches, from its clipped sums: those of its distinct `rows`, in that order, in `values`.

        Row r has its sum at `slots[r]`.

        >>> triples, slots = np.array([[3, 0, 1], [3, 0, 3]], np.int32), np.array([-1, 0, -1, 1], np.int32)
        >>> values = np.array([[1.0], [2.0]])
        >>> touched = Touched.of_sums(triples, np.array([1, 3], np.int32), slots, values, table=4)
        >>> touched.rows.tolist(), touched.counts.tolist(), touched.norms.tolist()
        ([1, 3], [1, 2], [1.0, 2.0])
        """
        counts, norms = np.zeros(len(rows), np.int64), np.empty(len(rows))
        _measure(triples, slots, values, counts, norms)
        return cls(rows, counts, norms, table)


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The rows to release, sorted and distinct; `passed` says whether a test was passed, where there is one."""

    rows: NDArray[np.int32]
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """The values that a selection is built from: options and public numbers, never data."""

    noise: float
    """The multiplier of the whole step, which selection and gradient share."""
    first_noise: float
    """The multiplier of the first round: what is drawn once uses it, whatever a schedule does later."""
    clip: Clip
    batch: int
    entities: int
    share: float
    """The share of the privacy cost that pays for the selection."""
    threshold: float
    kept: float
    """The share of the rows that a selection keeps, if it chooses them once."""
    failure: float
    """How likely a test may pass wrongly."""


Rows: TypeAlias = NDArray[np.int32]
Built: TypeAlias = "tuple[Selection, float]"
"""A selection, and the multiplier of the noise on gradients that it leaves."""


class Selection(Protocol):
    """A private choice of entity rows. Relation rows are always released, all of them, with noise.

    A class that names this one as its base states `name`, `is_private` and `releases_all`, and writes `build`, `select`
    and `event`. The other methods have an answer here that suits a selection without tests that releases nothing before
    training.
    """

    name: ClassVar[str]
    """The name of its option value."""
    is_private: ClassVar[bool]
    """Whether its event is a proved bound; False for what is kept only to reproduce a paper."""
    releases_all: ClassVar[bool]
    """Whether every row is released in every step: what negatives inside the clipped gradient need."""
    makes_tests: ClassVar[bool] = False
    """Whether a step makes a test and releases whether it passed."""
    draws_once: ClassVar[bool] = False
    """Whether rows are drawn once, before the first step (`draw`), and paid for then (`events_once`)."""

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:
        """The selection of a step; `rows` are those that `draw` returned, None before that."""
        ...

    @classmethod
    def check(cls, settings: SelectionSettings) -> None:
        """Raise a PrivacyError if public numbers leave nothing to choose, before anything is paid."""

    @classmethod
    def draw(cls, settings: SelectionSettings, triples: Rows, source: NoiseSource) -> Rows:
        """The rows that are chosen once from distinct triples; `events_once` says what that costs."""
        raise NotImplementedError(f"selection {cls.name} releases nothing before training")

    @property
    def made_for(self) -> tuple[Clip, int] | None:
        """The clip and the batch that its bounds hold for; None if they hold for all."""
        return None

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        """Choose the rows of one step."""
        ...

    def event(self, rate: float, multiplier: float) -> Event:
        """What the step costs: this choice and the release with `multiplier`, on one Poisson sample at `rate`."""
        ...

    def events_once(self) -> tuple[Event, ...]:
        """The events that `draw` is charged as, once."""
        return ()


def rows_outside(rows: NDArray[np.int32], ranks: NDArray[np.int64]) -> NDArray[np.int32]:
    """The rows at these ranks (from 0, by row number) among all rows that are not in `rows`, which are distinct.

    >>> rows_outside(np.array([3, 0], np.int32), np.array([0, 1, 2])).tolist()
    [1, 2, 4]
    """
    found: NDArray[np.int32] = _outside(np.sort(rows), ranks)
    return found


@strict
def _outside(ordered: NDArray[np.int32], ranks: NDArray[np.int64]) -> NDArray[np.int32]:
    """By bisection for how many of the ordered rows come before the rank-th row that is not among them."""
    found = np.empty(ranks.shape[0], np.int32)
    for i in range(ranks.shape[0]):
        low, high = 0, ordered.shape[0]
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] - middle <= ranks[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = ranks[i] + low
    return found


@strict_sum
def _measure(
    triples: NDArray[np.int32],
    slots: NDArray[np.int32],
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    norms: NDArray[np.float64],
) -> None:
    """How many triples touch each row, a self-loop once, and the norms of the rows' sums."""
    for i in range(triples.shape[0]):
        head, tail = slots[triples[i, 0]], slots[triples[i, 2]]
        counts[head] += 1
        if tail != head:
            counts[tail] += 1
    for slot in range(norms.shape[0]):
        total = 0.0
        for k in range(values.shape[1]):
            total += values[slot, k] ** 2
        norms[slot] = np.sqrt(total)
