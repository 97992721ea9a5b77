"""Every mechanism with a planted bug: the detector that the correct form passes must raise the alarm.

Each test runs one detector on the correct form and on the bug. The correct form alarms by chance with probability
`FALSE_ALARM`, a millionth, over the choice of its research seed (see `detectors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from fedkge.mechanisms import (
    Adafest,
    Clip,
    Fest,
    LazyNoise,
    NoiseSource,
    PerTriple,
    PoissonSampling,
    Ptr,
    PublicNegatives,
    Selected,
    StepPlan,
    Touched,
)
from fedkge.mechanisms.fest import degrees
from tests.statistical import detectors
from tests.statistical.detectors import alarms

ENTITIES, RELATIONS, WIDTH = 40, 10, 16
PLAN = StepPlan(batch=4, triples=4, clip=Clip(1.2, 0.8), multiplier=1.5)
Release = tuple[NDArray[np.float64], NDArray[np.float64]]
Step = Callable[[PerTriple, NoiseSource], Release]


class HalfTheNoise(NoiseSource):
    """Draws every Gaussian at half its deviation."""

    def _release(
        self,
        sums: NDArray[np.float64],
        places: NDArray[np.int32],
        deviation: float,
        batch: int,
        out: NDArray[np.floating[Any]],
    ) -> None:
        super()._release(sums, places, deviation / 2, batch, out)


@dataclass(frozen=True)
class NoClip(Clip):
    """Adds gradients as they are."""

    def add_to(self, per_triple: PerTriple, entities: NDArray[np.float64], relations: NDArray[np.float64]) -> None:
        np.add.at(entities, per_triple.entity_rows, per_triple.entity_values)
        np.add.at(relations, per_triple.relation_rows, per_triple.relation_values)


def dense_step(batch: PerTriple, source: NoiseSource, clip: Clip = PLAN.clip) -> Release:
    """One step with dense noise, as a client makes it."""
    sums = np.zeros((ENTITIES, WIDTH)), np.zeros((RELATIONS, WIDTH))
    clip.add_to(batch, *sums)
    entities, relations = (np.empty_like(table) for table in sums)
    for table, released in zip(sums, (entities, relations), strict=True):
        source.release(table, np.arange(len(table), dtype=np.int32), PLAN.deviation, 1, released)
    return entities, relations


def step_without_clip(batch: PerTriple, source: NoiseSource) -> Release:
    return dense_step(batch, source, NoClip(1.2, 0.8))


def step_with_raw_relations(batch: PerTriple, source: NoiseSource) -> Release:
    entities, _ = dense_step(batch, source)
    relations = np.zeros((RELATIONS, WIDTH))
    PLAN.clip.add_to(batch, np.zeros((ENTITIES, WIDTH)), relations)
    return entities, relations


def step_that_skips_untouched_rows(batch: PerTriple, source: NoiseSource) -> Release:
    entities, relations = dense_step(batch, source)
    untouched = np.setdiff1d(np.arange(ENTITIES), batch.entity_rows)
    entities[untouched] = 0
    return entities, relations


def triple_batch(rows: list[int], value: float) -> PerTriple:
    """One triple with the same gradient on each of its rows and on relation 0."""
    return PerTriple(
        np.full((len(rows), WIDTH), value),
        np.array(rows, np.int32),
        np.array([0, len(rows)]),
        np.full((1, WIDTH), value),
        np.zeros(1, np.int32),
    )


NOTHING = PerTriple(
    np.empty((0, WIDTH)), np.empty(0, np.int32), np.zeros(1, np.int64), np.empty((0, WIDTH)), np.empty(0, np.int32)
)


def noise_p_value(step: Step, source: NoiseSource) -> float:
    """An empty batch is released as noise of the plan's deviation on every row of both tables."""
    tables = [step(NOTHING, source) for _ in range(20)]
    entities = np.concatenate([entities for entities, _ in tables])
    relations = np.concatenate([relations for _, relations in tables])
    return 2 * min(detectors.variance(entities, PLAN.deviation), detectors.variance(relations, PLAN.deviation))


def test_noise_of_a_dense_step() -> None:
    assert not alarms(noise_p_value(dense_step, NoiseSource.research(1)))
    assert alarms(noise_p_value(dense_step, HalfTheNoise.research(1)))
    assert alarms(noise_p_value(step_with_raw_relations, NoiseSource.research(1)))
    assert alarms(noise_p_value(step_that_skips_untouched_rows, NoiseSource.research(1)))


def shift_p_value(step: Step, batch: PerTriple, source: NoiseSource, steps: int = 400) -> float:
    """Along the direction of its gradient, one triple moves the release by no more than the clip."""
    direction = np.zeros((ENTITIES + RELATIONS, WIDTH))
    np.add.at(direction, batch.entity_rows, batch.entity_values)
    np.add.at(direction, ENTITIES + batch.relation_rows, batch.relation_values)
    direction /= np.linalg.norm(direction)
    observed = [
        np.array([(np.concatenate(step(data, source)) * direction).sum() for _ in range(steps)])
        for data in (batch, NOTHING)
    ]
    return detectors.excess_shift(observed[0], observed[1], PLAN.clip.sensitivity, PLAN.deviation)


def test_influence_of_one_triple() -> None:
    ordinary = triple_batch([3, 7], 0.9)
    assert not alarms(shift_p_value(dense_step, ordinary, NoiseSource.research(2)))
    assert alarms(shift_p_value(step_without_clip, ordinary, NoiseSource.research(2)))


def coalesced(batch: PerTriple) -> PerTriple:
    rows, places = np.unique(batch.entity_rows, return_inverse=True)
    values = np.zeros((len(rows), WIDTH))
    np.add.at(values, places, batch.entity_values)
    return PerTriple(values, rows, np.array([0, len(rows)]), batch.relation_values, batch.relation_rows)


def test_influence_of_one_triple_whose_negatives_repeat() -> None:
    """Eight negatives that are all the head: eight pieces of norm C1 / sqrt(10) add up to far more than C1."""
    loop = triple_batch([3] * 9, 1.0)
    wide = StepPlan(4, 4, Clip(PLAN.clip.joint), PLAN.multiplier)

    def step(batch: PerTriple, source: NoiseSource) -> Release:
        return dense_step(batch, source, wide.clip)

    assert not alarms(shift_p_value(step, coalesced(loop), NoiseSource.research(3)))
    assert alarms(shift_p_value(step, loop, NoiseSource.research(3)))


Sampler = Callable[[int, NoiseSource], NDArray[np.int64]]


def batches_p_value(draw: Sampler, count: int, rate: float, source: NoiseSource, draws: int = 6_000) -> float:
    """Consecutive batches have independent binomial sizes, and overlap as independent coins do."""
    batches = [draw(count, source) for _ in range(draws)]
    sizes = np.bincount([len(batch) for batch in batches], minlength=count + 1)
    common = [len(np.intersect1d(one, other)) for one, other in zip(batches[::2], batches[1::2], strict=True)]
    overlaps = np.bincount(common, minlength=count + 1)
    numbers = np.arange(count + 1)
    return 2 * min(
        detectors.pattern(sizes, stats.binom.pmf(numbers, count, rate)),
        detectors.pattern(overlaps, stats.binom.pmf(numbers, count, rate**2)),
    )


def epochs(size: int) -> Sampler:
    """Shuffled epochs cut into batches: what most training loops do."""
    waiting: list[int] = []

    def draw(count: int, source: NoiseSource) -> NDArray[np.int64]:
        if len(waiting) < size:
            waiting[:] = source.generator.permutation(count).tolist()
        batch, waiting[:] = waiting[:size], waiting[size:]
        return np.array(batch)

    return draw


def capped(most: int) -> Sampler:
    return lambda count, source: PoissonSampling(0.25).draw(count, source)[:most]


def fixed_size(size: int) -> Sampler:
    return lambda count, source: source.generator.choice(count, size, replace=False)


@pytest.mark.parametrize("bug", [epochs(5), fixed_size(5), capped(7)], ids=["shuffled", "fixed size", "capped"])
def test_batches_are_poisson_samples(bug: Sampler) -> None:
    assert not alarms(batches_p_value(PoissonSampling(0.25).draw, 20, 0.25, NoiseSource.research(4)))
    assert alarms(batches_p_value(bug, 20, 0.25, NoiseSource.research(4)))


TOUCHED = Touched(np.array([4, 1], np.int32), np.array([3, 1]), np.array([1.0, 1.0]), table=6)
COUNTS = np.array([0, 1, 0, 0, 3, 0])


class NoFalsePositives(Adafest):
    """Tests only the rows that the batch touches."""

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        return Selected(np.intersect1d(super().select(touched, source).rows, touched.rows))


def chosen_rows_p_value(adafest: Adafest, source: NoiseSource, draws: int = 8_000) -> float:
    """Every set of rows is chosen as often as if each row had Gaussian noise on its count."""
    sets = np.zeros(2**TOUCHED.table)
    for _ in range(draws):
        sets[(1 << adafest.select(TOUCHED, source).rows.astype(np.int64)).sum()] += 1
    passes = stats.norm.sf(adafest.threshold, loc=COUNTS, scale=math.sqrt(2) * adafest.selection_multiplier)
    bits = (np.arange(len(sets))[:, None] >> np.arange(TOUCHED.table)) & 1
    return detectors.pattern(sets, np.where(bits, passes, 1 - passes).prod(axis=1))


def test_rows_of_adafest() -> None:
    assert not alarms(chosen_rows_p_value(Adafest(0.8, 1.5), NoiseSource.research(5)))
    assert alarms(chosen_rows_p_value(NoFalsePositives(0.8, 1.5), NoiseSource.research(5)))
    assert alarms(chosen_rows_p_value(Adafest(0.8, 1.5), HalfTheNoise.research(5)))


class HalfTheGumbel(NoiseSource):
    """Draws every Gumbel at half its scale."""

    def gumbel(self, size: int, scale: float) -> NDArray[np.float64]:
        return super().gumbel(size, scale / 2)


class NoMargin(Ptr):
    """Forgets to take the margin off the noisy gap: the test passes by a fair coin."""

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        return Ptr(self.clip, self.batch, self.gap_multiplier, self.test_multiplier, 0.499999).select(touched, source)


def guesses_p_value(ptr: Ptr, source: NoiseSource, draws: int = 12_000) -> float:
    """With all gaps below their sensitivity, a pass is a coin of `failure` and the guess follows exp(gap / scale)."""
    norms = np.array([4.2, 2.7, 2.6, 1.1, 0.0])
    touched = Touched(np.arange(5, dtype=np.int32), np.ones(5, np.int64), norms, table=20)
    weights = special.softmax(np.array([0.1, 1.5, 1.1]) / (2 * ptr.clip.row_bound * ptr.gap_multiplier))
    outcomes = np.zeros(6)
    for _ in range(draws):
        outcomes[len(ptr.select(touched, source).rows)] += 1
    law = np.zeros(6)
    law[0], law[2:5] = 1 - ptr.failure, ptr.failure * weights
    return detectors.pattern(outcomes, law)


def test_guess_and_test_of_ptr() -> None:
    settings: dict[str, Any] = {"batch": 2, "gap_multiplier": 0.5, "test_multiplier": 1.0, "failure": 0.3}
    ptr = Ptr(Clip(1.2, 0.8), **settings)
    assert not alarms(guesses_p_value(ptr, NoiseSource.research(6)))
    assert alarms(guesses_p_value(ptr, HalfTheGumbel.research(6)))
    assert alarms(guesses_p_value(ptr, HalfTheNoise.research(6)))
    assert alarms(guesses_p_value(NoMargin(Clip(1.2, 0.8), **settings), NoiseSource.research(6)))


STAR = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 1]], np.int32)
"""Degrees 2, 2 and 1; a loop that counted twice would make them 2, 3 and 1."""


def histogram_p_value(keep_one: Callable[[NoiseSource], Fest], source: NoiseSource, draws: int = 4_000) -> float:
    """The row of degree 1 is kept rather than both of degree 2 as often as Gaussian noise of sqrt(2) per row says."""
    grid = np.linspace(-12, 14, 4001)
    density = stats.norm.pdf(grid, 1, math.sqrt(2)) * stats.norm.cdf(grid, 2, math.sqrt(2)) ** 2
    kept = sum(keep_one(source).rows.tolist() == [2] for _ in range(draws))
    return detectors.share(kept, draws, float(np.trapezoid(density, grid)))


def test_histogram_of_fest() -> None:
    def keep_one(source: NoiseSource) -> Fest:
        return Fest.of_histogram(STAR, 3, 1, 1.0, source)

    def loops_twice(source: NoiseSource) -> Fest:
        twice = degrees(STAR, 3) + np.bincount(STAR[STAR[:, 0] == STAR[:, 2], 0], minlength=3)
        noisy = twice + source.gaussian(3, math.sqrt(2))
        return Fest(np.argsort(noisy)[-1:].astype(np.int32))

    assert not alarms(histogram_p_value(keep_one, NoiseSource.research(7)))
    assert alarms(histogram_p_value(keep_one, HalfTheNoise.research(7)))
    assert alarms(histogram_p_value(loops_twice, NoiseSource.research(7)))


class ForgetsDebts(LazyNoise):
    """Pays one step of noise, however many are owed."""

    def settle(self, rows: Any, table: Any, deviation_per_step: float, source: NoiseSource) -> None:
        self._paid[rows] = self._steps - 1
        super().settle(rows, table, deviation_per_step, source)


def late_noise_p_value(lazy: LazyNoise, source: NoiseSource, steps: int = 5) -> float:
    """After five steps, rows read on the way and rows never read have five steps of noise."""
    table = np.zeros((ENTITIES, WIDTH))
    for _ in range(steps):
        lazy.settle(np.arange(0, ENTITIES, 4), table, 0.1, source)
        lazy.owe()
    lazy.settle_all(table, 0.1, source)
    return detectors.variance(table, 0.1 * math.sqrt(steps))


def test_late_noise() -> None:
    assert not alarms(late_noise_p_value(LazyNoise(ENTITIES), NoiseSource.research(8)))
    assert alarms(late_noise_p_value(ForgetsDebts(ENTITIES), NoiseSource.research(8)))
    assert alarms(late_noise_p_value(LazyNoise(ENTITIES), HalfTheNoise.research(8)))


def negatives_p_value(drawn: NDArray[np.int32]) -> float:
    """All triples over 5 entities and 2 relations are equally probable."""
    cells = drawn[:, 0] * 10 + drawn[:, 1] * 5 + drawn[:, 2]
    return detectors.pattern(np.bincount(cells, minlength=50), np.full(50, 1 / 50))


def test_public_negatives_know_no_private_triple() -> None:
    private = np.array([[0, 0, 1], [3, 1, 2]], np.int32)
    uniform = PublicNegatives(5, 2).draw(10_000, NoiseSource.research(9))
    is_private = (uniform[:, None] == private).all(axis=2).any(axis=1)
    assert not alarms(negatives_p_value(uniform))
    assert alarms(negatives_p_value(uniform[~is_private]))
    corrupted = PublicNegatives(5, 2, pairs=private[:, :2]).draw(10_000, NoiseSource.research(9))
    assert alarms(negatives_p_value(corrupted))
