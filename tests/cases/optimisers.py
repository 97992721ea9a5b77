"""What every optimiser must do: equal its textbook twin step by step, and go on exactly where it was copied."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkge.models.optimisers import make_optimiser
from fedkge.models.tables import RowGradient
from tests.cases import Case

RATE, ROWS, WIDTH = 0.05, 6, 3


class Twin:
    """The textbook update on dense arrays."""

    def step(self, table: Any, dense: Any, touched: Any) -> Any:
        """The table after one step; `touched` are the rows that have a gradient."""
        raise NotImplementedError


class OptimiserCase(Case):
    """A registered optimiser. A subclass names it and makes its twin."""

    moves_untouched_rows = False

    def twin(self) -> Twin:
        raise NotImplementedError

    def test_equals_its_twin_step_by_step(self) -> None:
        generator = np.random.default_rng(3)
        table = generator.normal(size=(ROWS, WIDTH))
        expected, twin = table.copy(), self.twin()
        optimiser = make_optimiser(self.name, table, RATE)
        gradient = RowGradient(ROWS, WIDTH, ROWS, np.float64)
        for _ in range(25):
            touched = generator.choice(ROWS, size=generator.integers(0, ROWS), replace=False).astype(np.int32)
            dense = np.zeros((ROWS, WIDTH))
            dense[touched] = generator.normal(size=(len(touched), WIDTH))
            gradient.touch(touched)
            gradient.values[gradient.slots[touched]] = dense[touched]
            before = table.copy()
            optimiser.step(table, gradient)
            gradient.clear()
            expected = twin.step(expected, dense, touched)
            np.testing.assert_allclose(table, expected, rtol=1e-10, atol=1e-12)
            if not self.moves_untouched_rows:
                others = np.setdiff1d(np.arange(ROWS), touched)
                np.testing.assert_array_equal(table[others], before[others])

    def test_state_can_be_copied_back(self) -> None:
        """A restored optimiser goes on exactly as the one it was copied from."""
        generator = np.random.default_rng(4)
        table = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
        first = make_optimiser(self.name, table, RATE)
        one_step(first, table, seed=5)
        second = make_optimiser(self.name, table, RATE)
        for key, value in second.state().items():
            value[...] = first.state()[key]
        copy = table.copy()
        one_step(first, table, seed=6)
        one_step(second, copy, seed=6)
        np.testing.assert_array_equal(table, copy)

    def test_the_state_starts_empty_and_is_updated_in_place(self) -> None:
        """A checkpoint holds these arrays, so they must stay the same objects."""
        table = np.ones((ROWS, WIDTH), np.float32)
        optimiser = make_optimiser(self.name, table, RATE)
        state = optimiser.state()
        assert all(not value.any() for value in state.values())
        one_step(optimiser, table, seed=1)
        assert all(value is state[key] for key, value in optimiser.state().items())
        assert all(value.any() for value in state.values())

    def test_a_step_goes_downhill(self) -> None:
        table = np.zeros((ROWS, WIDTH), np.float32)
        gradient = RowGradient(ROWS, WIDTH, ROWS)
        gradient.touch(np.array([2], np.int32))
        gradient.values[0] = [1.0, -1.0, 0.0]
        make_optimiser(self.name, table, RATE).step(table, gradient)
        assert np.sign(table[2]).tolist() == [-1.0, 1.0, 0.0]
        assert np.isfinite(table).all()


def one_step(optimiser: Any, rows: Any, seed: int) -> None:
    gradient = RowGradient(ROWS, WIDTH, ROWS)
    gradient.touch(np.array([1, 4], np.int32))
    gradient.values[:2] = np.random.default_rng(seed).normal(size=(2, WIDTH))
    optimiser.step(rows, gradient)
