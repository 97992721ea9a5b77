"""Each optimiser by name, with its textbook update; the tests are in `OptimiserCase`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkge.models.tables import RowGradient
from tests.cases.optimisers import RATE, ROWS, WIDTH, OptimiserCase, Twin


class GradientDescent(Twin):
    def step(self, table: Any, dense: Any, touched: Any) -> Any:  # noqa: ARG002
        return table - RATE * dense


class TextbookAdagrad(Twin):
    def __init__(self) -> None:
        self.squares = np.zeros((ROWS, WIDTH))

    def step(self, table: Any, dense: Any, touched: Any) -> Any:  # noqa: ARG002
        self.squares += dense**2
        return table - RATE * dense / (np.sqrt(self.squares) + 1e-10)


class TextbookAdam(Twin):
    """Lazy Adam keeps a clock per row and leaves rows without a gradient alone."""

    def __init__(self, lazy: bool) -> None:
        self.lazy = lazy
        self.first, self.second = np.zeros((ROWS, WIDTH)), np.zeros((ROWS, WIDTH))
        self.clock = np.zeros((ROWS, 1))

    def step(self, table: Any, dense: Any, touched: Any) -> Any:
        active = np.full((ROWS, 1), not self.lazy)
        active[touched] = True
        self.clock += active
        self.first = np.where(active, 0.9 * self.first + 0.1 * dense, self.first)
        self.second = np.where(active, 0.999 * self.second + 0.001 * dense**2, self.second)
        age = np.maximum(self.clock, 1)
        first, second = self.first / (1 - 0.9**age), self.second / (1 - 0.999**age)
        return np.where(active, table - RATE * first / (np.sqrt(second) + 1e-8), table)


class TestSGD(OptimiserCase):
    name = "sgd"

    def twin(self) -> Twin:
        return GradientDescent()


class TestAdagrad(OptimiserCase):
    name = "adagrad"

    def twin(self) -> Twin:
        return TextbookAdagrad()


class TestLazyAdam(OptimiserCase):
    name = "lazy-adam"

    def twin(self) -> Twin:
        return TextbookAdam(lazy=True)


class TestAdam(OptimiserCase):
    name = "adam"
    moves_untouched_rows = True

    def twin(self) -> Twin:
        return TextbookAdam(lazy=False)


def test_repeated_rows_are_summed_in_one_slot() -> None:
    gradient = RowGradient(rows=5, width=1, capacity=5)
    gradient.touch(np.array([2, 2, 0, 2], np.int32))
    assert gradient.touched.tolist() == [2, 0]
    gradient.values[gradient.slots[2]] += 7
    gradient.clear()
    gradient.touch(np.array([2], np.int32))
    assert gradient.values[0, 0] == 0
