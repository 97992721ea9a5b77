"""Optimisers that update table rows in place: SGD, Adagrad, and Adam, lazy or dense.

Each keeps its state per table. A lazy step changes only the rows that the step touched; dense Adam also moves
rows without a gradient by their remaining momentum, as optimisers on dense gradients do, at the cost of a pass
over the whole table per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from fedkge.base.registry import look_up
from fedkge.models.kernel import kernel
from fedkge.models.tables import Ids, RowGradient, Table

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8
ADAGRAD_EPSILON = 1e-10
OLD = 40_000
"""Updates after which Adam's bias corrections are 1 to all digits of a float64: 0.999 ** 40,000 < 1e-17."""


class Optimiser(Protocol):
    """Turns the gradient of one table into an update of that table."""

    rate: float

    def step(self, table: Table, gradient: RowGradient) -> None:
        """Update `table` in place."""
        ...

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays that a checkpoint must hold; `step` updates them in place."""
        ...


@kernel
def _sgd(table, rows, values, rate):
    for slot in range(rows.shape[0]):
        row = rows[slot]
        for k in range(table.shape[1]):
            table[row, k] -= rate * values[slot, k]


class SGD:
    """row -= rate * gradient.

    >>> table, gradient = np.ones((2, 1), np.float32), RowGradient(2, 1, 2)
    >>> gradient.touch(np.array([1], np.int32)); gradient.values[0] = 1
    >>> SGD(table, rate=0.5).step(table, gradient); table.ravel().tolist()
    [1.0, 0.5]
    """

    def __init__(self, table: Table, rate: float) -> None:  # noqa: ARG002 - all optimisers are made alike
        self.rate = rate

    def step(self, table: Table, gradient: RowGradient) -> None:
        """Update the touched rows."""
        _sgd(table, gradient.touched, gradient.values, table.dtype.type(self.rate))

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """SGD remembers nothing."""
        return {}


@kernel
def _adagrad(table, rows, values, squares, rate, epsilon):
    for slot in range(rows.shape[0]):
        row = rows[slot]
        for k in range(table.shape[1]):
            slope = values[slot, k]
            square = squares[row, k] + slope * slope
            squares[row, k] = square
            table[row, k] -= rate * slope / (np.sqrt(square) + epsilon)


class Adagrad:
    """Adagrad with one accumulator per number (Duchi et al., 2011)."""

    def __init__(self, table: Table, rate: float) -> None:
        self.rate = rate
        self.squares = np.zeros_like(table)

    def step(self, table: Table, gradient: RowGradient) -> None:
        """Update the touched rows."""
        rate, epsilon = table.dtype.type(self.rate), table.dtype.type(ADAGRAD_EPSILON)
        _adagrad(table, gradient.touched, gradient.values, self.squares, rate, epsilon)

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """The sums of squares."""
        return {"squares": self.squares}


@kernel
def _lazy_adam(table, slots, rows, values, first, second, counts, boosts, spreads, rate, beta1, beta2, epsilon):
    """Update the rows in the order of their slots or, where many were touched, in the order of the table."""
    one = table.dtype.type(1)
    in_order = 4 * rows.shape[0] > table.shape[0]
    for i in range(table.shape[0] if in_order else rows.shape[0]):
        row = i if in_order else rows[i]
        slot = slots[row]
        if slot < 0:
            continue
        counts[row] += 1
        age = min(counts[row], boosts.shape[0] - 1)
        scale, spread = rate * boosts[age], spreads[age]
        for k in range(table.shape[1]):
            slope = values[slot, k]
            moment = beta1 * first[row, k] + (one - beta1) * slope
            square = beta2 * second[row, k] + (one - beta2) * slope * slope
            first[row, k] = moment
            second[row, k] = square
            table[row, k] -= scale * moment / (spread * np.sqrt(square) + epsilon)


class LazyAdam:
    """Adam (Kingma and Ba, 2015) as if each row had an optimiser of its own that only sees its own gradients."""

    def __init__(self, table: Table, rate: float) -> None:
        self.rate = rate
        self.first, self.second = np.zeros_like(table), np.zeros_like(table)
        self.counts: Ids = np.zeros(len(table), dtype=np.int32)
        age = np.maximum(np.arange(OLD), 1)
        self._boosts = (1 / -np.expm1(age * np.log(FIRST_DECAY))).astype(table.dtype)
        self._spreads = (1 / np.sqrt(-np.expm1(age * np.log(SECOND_DECAY)))).astype(table.dtype)

    def step(self, table: Table, gradient: RowGradient) -> None:
        """Update the touched rows."""
        numbers = (table.dtype.type(x) for x in (self.rate, FIRST_DECAY, SECOND_DECAY, EPSILON))
        state = self.first, self.second, self.counts, self._boosts, self._spreads
        _lazy_adam(table, gradient.slots, gradient.touched, gradient.values, *state, *numbers)

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """Both moments and the number of updates per row."""
        return {"first": self.first, "second": self.second, "counts": self.counts}


@kernel
def _dense_adam(table, slots, values, first, second, scale, spread, beta1, beta2, epsilon):
    one = table.dtype.type(1)
    for row in range(table.shape[0]):
        slot = slots[row]
        for k in range(table.shape[1]):
            slope = values[slot, k] if slot >= 0 else table.dtype.type(0)
            moment = beta1 * first[row, k] + (one - beta1) * slope
            square = beta2 * second[row, k] + (one - beta2) * slope * slope
            first[row, k] = moment
            second[row, k] = square
            table[row, k] -= scale * moment / (spread * np.sqrt(square) + epsilon)


class Adam:
    """Adam on the whole table in every step, as on dense gradients."""

    def __init__(self, table: Table, rate: float) -> None:
        self.rate = rate
        self.first, self.second = np.zeros_like(table), np.zeros_like(table)
        self.count = np.zeros(1, dtype=np.int64)

    def step(self, table: Table, gradient: RowGradient) -> None:
        """Update every row."""
        self.count += 1
        count = int(self.count[0])
        scale = self.rate / (1 - FIRST_DECAY**count)
        spread = 1 / (1 - SECOND_DECAY**count) ** 0.5
        numbers = (table.dtype.type(x) for x in (scale, spread, FIRST_DECAY, SECOND_DECAY, EPSILON))
        _dense_adam(table, gradient.slots, gradient.values, self.first, self.second, *numbers)

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """Both moments and the number of steps."""
        return {"first": self.first, "second": self.second, "count": self.count}


OPTIMISERS: dict[str, Callable[[Table, float], Optimiser]] = {
    "lazy-adam": LazyAdam,
    "adam": Adam,
    "adagrad": Adagrad,
    "sgd": SGD,
}


def make_optimiser(name: str, table: Table, rate: float) -> Optimiser:
    """A fresh optimiser for `table`, or an error that lists the near names."""
    return look_up(OPTIMISERS, name, "optimiser")(table, rate)
