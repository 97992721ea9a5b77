"""The sensitivity that an object carries is the largest change that one triple makes: tried out on all small graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from fedkge.accounting.pld import PLDAccountant
from fedkge.base.errors import PrivacyError
from fedkge.defences.advance import exact_size
from fedkge.defences.counts.released import profile_cells, typed_cells
from fedkge.defences.noisy_copy.noisy_copy import cells_of
from fedkge.graph import Graph
from fedkge.graph.restricted import mentions
from fedkge.mechanisms.clipping import Clip, PerTriple
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.mechanisms.events import Charge, Geometric, Names, Responses, SampledTest, Size
from fedkge.mechanisms.fest import degrees
from fedkge.mechanisms.metrics import GRID, NoisyMean, shares_of
from fedkge.mechanisms.names import name_event
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Touched
from fedkge.mechanisms.size import size_event

ENTITIES, RELATIONS, TYPES = 3, 1, 2
KINDS = np.array([0, 1, 1], np.int32)
POSSIBLE = [(head, 0, tail) for head, tail in product(range(ENTITIES), repeat=2)]
Statistic = Callable[[np.ndarray], np.ndarray]


def table(cells: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(cells.ravel(), minlength=size)


def graph_of(triples: np.ndarray) -> Graph:
    names = tuple("abc")
    return Graph.from_names("tiny", train=[(names[head], "r", names[tail]) for head, _, tail in triples.tolist()])


STATISTICS: dict[str, tuple[Statistic, int, float]] = {
    "profile": (lambda some: table(profile_cells(some, ENTITIES, RELATIONS), 6), 1, Geometric(1).sensitivity),
    "typed": (lambda some: table(typed_cells(some, KINDS, TYPES, ENTITIES, 1), 12), 1, Geometric(1).sensitivity),
    "size": (lambda some: np.array([exact_size(graph_of(some)) if len(some) else 0]), 1, Size(1).sensitivity),
    "names": (lambda some: mentions(some.astype(np.int32), ENTITIES), 1, Names(1, 5).sensitivity),
    "responses": (lambda some: table(cells_of(some, ENTITIES), 9), 1, Responses(1).sensitivity),
    "degrees": (lambda some: degrees(some.astype(np.int32), ENTITIES), 2, Touched.count_sensitivity),
}
"""What is released with noise, the norm that its noise is for, and the sensitivity that its object carries."""


def neighbours() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every graph of up to three triples, and every graph that has one of them less."""
    for size in range(1, 4):
        for triples in combinations(POSSIBLE, size):
            whole = np.array(triples, np.int64)
            for left_out in range(size):
                yield whole, np.delete(whole, left_out, axis=0)


def largest_change(statistic: Statistic, norm: int) -> float:
    changes = (statistic(whole) - statistic(less) for whole, less in neighbours())
    return max(float(np.linalg.norm(change, norm)) for change in changes)


@pytest.mark.parametrize("name", STATISTICS)
def test_the_carried_sensitivity_is_attained_and_never_exceeded(name: str) -> None:
    statistic, norm, carried = STATISTICS[name]
    assert largest_change(statistic, norm) == pytest.approx(carried, rel=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("factor", [0.5, 2])
def test_a_planted_wrong_sensitivity_is_caught(name: str, factor: float) -> None:
    """A mechanism that counts each triple twice, or half, no longer fits what its object carries."""
    statistic, norm, carried = STATISTICS[name]
    assert largest_change(lambda some: factor * statistic(some), norm) != pytest.approx(carried, rel=1e-12)


def test_noise_and_price_follow_the_carried_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes the one number changes noise, threshold, price and table together: no constant stays behind."""

    def prices() -> list[Any]:
        return [
            Geometric.scale_for(4.0),
            size_event(1.0).scale,
            name_event(2.0, 1e-5).scale,
            name_event(2.0, 1e-5).exposure / math.exp(-(name_event(2.0, 1e-5).threshold - 1) / 1.5),
            PLDAccountant().epsilon([Charge(Size(2.5))], 1e-9),
        ]

    before = prices()
    for event, cells in ((Geometric, 3), (Size, 2), (Names, 3)):
        monkeypatch.setattr(event, "cells", cells)
    after = prices()
    assert [two / one for one, two in zip(before[:3], after[:3], strict=True)] == [1.5, 2, 1.5]
    assert after[4] == pytest.approx(2 * before[4])
    with pytest.raises(PrivacyError, match="3 different cells"):
        NoisyCounts.release(np.array([[0, 1]]), 5, 1.0, NoiseSource.research(0))


def test_a_table_where_a_triple_changes_more_or_fewer_cells_is_refused() -> None:
    for cells in ([[0]], [[0, 1, 2]], [[3, 3]]):
        with pytest.raises(PrivacyError, match="different cells"):
            NoisyCounts.release(np.array(cells), 5, 1.0, NoiseSource.research(0))


def test_a_noisy_mean_moves_by_what_it_carries() -> None:
    grid = [0.0, 0.3, 1.0]
    changes = [
        (int(shares_of(np.array([*rest, value])).sum() - shares_of(np.array(rest)).sum()), 1)
        for rest in product(grid, repeat=2)
        for value in grid
    ]
    assert (max(change for change, _ in changes), 1) == NoisyMean.sensitivities == (GRID, 1)


@pytest.mark.parametrize("clip", [Clip(1.2, 0.8), Clip(0.5), Clip(1.0, normalise=True), Clip(1.0, 3.0)])
def test_a_clipped_sum_moves_by_what_it_carries(clip: Clip) -> None:
    """The relation's row has no clip of its own, so the joint one is attained there; gaps as Gumbel noise sees them."""
    rows = np.array([0, 1], np.int32)
    moved = []
    for gradient in (1e-3, 0.4, 5.0, 1e6):
        entities, relations = np.zeros((2, 1)), np.zeros((1, 1))
        batch = PerTriple(np.zeros((2, 1)), rows, np.array([0, 2]), np.array([[gradient]]), rows[:1])
        clip.add_to(batch, entities, relations)
        moved.append(math.hypot(*entities.ravel(), *relations.ravel()))
    assert max(moved) == pytest.approx(clip.sensitivity, rel=1e-9)
    assert max(moved) <= clip.sensitivity
    for gap in (0.5, 3.0):
        event = SampledTest(0.1, gap, 1, 1, 1e-6)
        assert event.range == pytest.approx(clip.range_sensitivity / (clip.guess_scale * gap))
