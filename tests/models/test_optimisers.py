"""Optimisers equal NumPy twins step by step."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.models.optimisers import OPTIMISERS, make_optimiser
from fedkge.models.tables import RowGradient

RATE, ROWS, WIDTH = 0.05, 6, 3


class Twin:
    """The textbook update on dense arrays; lazy Adam keeps a clock per row and leaves untouched rows alone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.first, self.second = np.zeros((ROWS, WIDTH)), np.zeros((ROWS, WIDTH))
        self.clock = np.zeros((ROWS, 1))

    def step(self, table, dense, touched):
        active = np.zeros((ROWS, 1), dtype=bool)
        active[touched] = True
        if self.name == "sgd":
            return table - RATE * dense
        if self.name == "adagrad":
            self.second += dense**2
            return table - RATE * dense / (np.sqrt(self.second) + 1e-10)
        if self.name == "adam":
            active[:] = True
        self.clock += active
        self.first = np.where(active, 0.9 * self.first + 0.1 * dense, self.first)
        self.second = np.where(active, 0.999 * self.second + 0.001 * dense**2, self.second)
        age = np.maximum(self.clock, 1)
        first, second = self.first / (1 - 0.9**age), self.second / (1 - 0.999**age)
        return np.where(active, table - RATE * first / (np.sqrt(second) + 1e-8), table)


@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_equals_its_twin_step_by_step(name):
    generator = np.random.default_rng(3)
    table = generator.normal(size=(ROWS, WIDTH))
    expected, twin = table.copy(), Twin(name)
    optimiser = make_optimiser(name, table, RATE)
    gradient = RowGradient(ROWS, WIDTH, ROWS, np.float64)
    for _ in range(25):
        touched = generator.choice(ROWS, size=generator.integers(0, ROWS), replace=False).astype(np.int32)
        dense = np.zeros((ROWS, WIDTH))
        dense[touched] = generator.normal(size=(len(touched), WIDTH))
        gradient.touch(touched)
        gradient.values[gradient.slots[touched]] = dense[touched]
        optimiser.step(table, gradient)
        gradient.clear()
        expected = twin.step(expected, dense, touched)
        np.testing.assert_allclose(table, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_state_can_be_copied_back(name):
    """A restored optimiser goes on exactly as the one it was copied from."""
    generator = np.random.default_rng(4)
    gradient = RowGradient(ROWS, WIDTH, ROWS)
    table = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
    first = make_optimiser(name, table, RATE)

    def step(optimiser, rows):
        gradient.touch(np.array([1, 4], np.int32))
        gradient.values[:2] = generator.normal(size=(2, WIDTH))
        optimiser.step(rows, gradient)
        gradient.clear()

    step(first, table)
    second = make_optimiser(name, table, RATE)
    for key, value in second.state().items():
        value[...] = first.state()[key]
    copy = table.copy()
    generator = np.random.default_rng(6)
    step(first, table)
    generator = np.random.default_rng(6)
    step(second, copy)
    np.testing.assert_array_equal(table, copy)


def test_repeated_rows_are_summed_in_one_slot():
    gradient = RowGradient(rows=5, width=1, capacity=5)
    gradient.touch(np.array([2, 2, 0, 2], np.int32))
    assert gradient.touched.tolist() == [2, 0]
    gradient.values[gradient.slots[2]] += 7
    gradient.clear()
    gradient.touch(np.array([2], np.int32))
    assert gradient.values[0, 0] == 0
