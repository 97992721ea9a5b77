"""The noise has its deviation, is independent and on its grid; research seeds repeat, secret sources do not.

Statistical checks alarm by chance with the probability that `tests/statistical/detectors.py` states, once per seed.
"""

import copy
import math
import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms import NoiseSource
from fedkge.mechanisms.noise import BLOCK, grid_step
from fedkge.mechanisms.ziggurat import EDGES, HEIGHTS, RESERVE, TAIL, release_on_grid
from tests.statistical import detectors
from tests.statistical.detectors import alarms


@pytest.mark.parametrize("deviation", [1e-3, 1.0, 37.0])
def test_gaussian_noise_has_its_deviation_and_its_distribution(deviation: float) -> None:
    noise = NoiseSource.research(1).gaussian(100_000, deviation)
    assert not alarms(detectors.variance(noise, deviation))
    assert not alarms(detectors.normality(noise, deviation))


@pytest.mark.parametrize("source", [NoiseSource.research(8), NoiseSource.secret()], ids=["research", "secret"])
def test_noise_is_gaussian_in_every_part_of_the_curve(source: NoiseSource) -> None:
    noise = source.gaussian(4_000_000, 1.0)
    edges = stats.norm.ppf(np.linspace(0, 1, 1001))
    assert not alarms(detectors.pattern(np.histogram(noise, edges)[0], np.full(1000, 1e-3)))
    for bound in (3.0, TAIL, 4.0, 4.5):
        for beyond in (noise > bound, noise < -bound):
            assert not alarms(detectors.share(int(beyond.sum()), noise.size, float(stats.norm.sf(bound))))


def test_the_layers_of_the_ziggurat_have_equal_areas_and_close_at_the_top() -> None:
    areas = EDGES[1:-1] * np.diff(HEIGHTS)[1:]
    base = EDGES[0] * HEIGHTS[1]
    np.testing.assert_allclose(areas, base, rtol=1e-12)
    assert base == pytest.approx(TAIL * stats.norm.pdf(TAIL) * math.sqrt(2 * math.pi) + _area_beyond(TAIL), rel=1e-12)


def _area_beyond(bound: float) -> float:
    return float(stats.norm.sf(bound)) * math.sqrt(2 * math.pi)


def test_a_draw_in_the_tail_that_finds_no_words_is_not_left_half_done() -> None:
    words = np.zeros(RESERVE + 1, np.uint64)
    words[0] = np.uint64(2**64 - 512)  # layer 0, the largest magnitude: the tail, whose tries all fail on zeros
    out = np.full((1, 1), np.nan)
    assert release_on_grid(words, np.empty((0, 1)), np.full(1, -1, np.int32), out, 0, 1.0, 2.0**-40, 1.0) == 0
    assert np.isnan(out[0, 0])


@pytest.mark.parametrize("rows", [1, 3, BLOCK // 8])
def test_what_is_released_is_the_sum_and_the_noise_over_the_batch(rows: int) -> None:
    sums, out = np.arange(48.0).reshape(2, 24), np.full((rows, 24), np.nan)
    places = (np.arange(rows) % 3 - 1).astype(np.int32)
    NoiseSource.research(4).release(sums, places, 2.0, 8, out)
    noise = NoiseSource.research(4).gaussian((rows, 24), 2.0)
    expected = noise + np.where(places[:, np.newaxis] >= 0, sums[places], 0)
    np.testing.assert_allclose(8 * out, expected, rtol=0, atol=2 * grid_step(2.0))
    assert not (np.abs(8 * out / grid_step(2.0)) % 1).any()


def test_nothing_is_released_for_places_that_have_no_sum() -> None:
    with pytest.raises(PrivacyError, match="do not release anything"):
        NoiseSource.research(4).release(np.ones((2, 3)), np.array([2], np.int32), 1.0, 1, np.empty((1, 3)))


def test_every_number_of_a_table_has_noise_of_its_own() -> None:
    table = NoiseSource.research(2).gaussian((BLOCK // 8, 24), 2.0)
    assert not alarms(detectors.variance(table, 2.0))
    assert not alarms(detectors.correlation(table[1:].ravel(), table[:-1].ravel(), 2.0))
    assert not alarms(detectors.correlation(table[:, 1:].ravel(), table[:, :-1].ravel(), 2.0))
    blocks = table.ravel().reshape(3, BLOCK)
    assert not alarms(detectors.correlation(blocks[0], blocks[1], 2.0))
    assert not alarms(detectors.correlation(table.ravel()[1:] ** 2 - 4, table.ravel()[:-1] ** 2 - 4, 4 * math.sqrt(2)))


def test_gumbel_noise_has_its_distribution() -> None:
    noise = NoiseSource.research(3).gumbel(50_000, 1.6)
    assert not alarms(float(stats.kstest(noise / 1.6, "gumbel_r").pvalue))


def test_a_research_seed_repeats_and_its_keys_differ() -> None:
    draws = [
        NoiseSource.research(*key).gaussian(1000, 1.0) for key in [(7, 1, 2), (7, 1, 2), (7, 2, 1), (7,), (8, 1, 2)]
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    for other in draws[2:]:
        assert not alarms(detectors.correlation(draws[0], other, 1.0))


def test_secret_sources_do_not_repeat() -> None:
    one, two = NoiseSource.secret(), NoiseSource.secret()
    assert one.is_secret
    assert not (one.gaussian(1000, 1.0) == two.gaussian(1000, 1.0)).any()


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_is_not_copied(make_copy: object) -> None:
    with pytest.raises(PrivacyError, match="cannot be copied"):
        make_copy(NoiseSource.secret())  # type: ignore[operator]


def test_a_secret_source_is_not_used_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    source, research = NoiseSource.secret(), NoiseSource.research(1)
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    with pytest.raises(PrivacyError, match="fork"):
        source.gaussian(1, 1.0)
    research.gaussian(1, 1.0)


@given(deviation=st.floats(1e-9, 1e9), seed=st.integers(0, 1000))
def test_noise_and_released_sums_lie_on_the_grid(deviation: float, seed: int) -> None:
    step = grid_step(deviation)
    assert math.frexp(step)[0] == 0.5
    assert 2.0**-41 <= step / deviation <= 2.0**-40
    noise = NoiseSource.research(seed).gaussian((5, 3), deviation)
    sums, released = np.random.default_rng(seed).normal(size=(5, 3)), np.empty((5, 3))
    NoiseSource.research(seed).release(sums, np.arange(5, dtype=np.int32), deviation, 1, released)
    for numbers in (noise, released):
        np.testing.assert_array_equal(np.mod(numbers, step), 0)


def test_sums_far_above_the_grid_stay_as_they_are() -> None:
    sums, released = np.array([[-3e30, 1e33]]), np.empty((1, 2))
    NoiseSource.research(1).release(sums, np.zeros(1, np.int32), 1.0, 1, released)
    assert released.tolist() == sums.tolist()


@pytest.mark.parametrize("deviation", [0.0, -1.0, math.nan, math.inf])
def test_noise_that_hides_nothing_is_refused(deviation: float) -> None:
    source = NoiseSource.research(1)
    with pytest.raises(PrivacyError):
        source.gaussian(3, deviation)
    with pytest.raises(PrivacyError):
        source.gumbel(3, deviation)
