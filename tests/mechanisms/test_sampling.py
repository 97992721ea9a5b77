"""Poisson batches have the law of independent coins. False-alarm rate: see `tests/statistical/detectors.py`."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms import NoiseSource, PoissonSampling
from tests.statistical import detectors
from tests.statistical.detectors import alarms


@given(rate=st.floats(1e-6, 1), count=st.integers(0, 30_000), seed=st.integers(0, 1000))
def test_a_batch_holds_distinct_positions(rate: float, count: int, seed: int) -> None:
    batch = PoissonSampling(rate).draw(count, NoiseSource.research(seed))
    assert len(np.unique(batch)) == len(batch)
    assert batch.dtype == np.int64
    assert ((batch >= 0) & (batch < count)).all()


def test_every_subset_is_as_probable_as_by_independent_coins() -> None:
    count, rate, source = 4, 0.3, NoiseSource.research(1)
    sampling = PoissonSampling(rate)
    counts = np.zeros(2**count)
    for _ in range(20_000):
        counts[(1 << sampling.draw(count, source)).sum()] += 1
    heads = np.array([subset.bit_count() for subset in range(2**count)])
    assert not alarms(detectors.pattern(counts, rate**heads * (1 - rate) ** (count - heads)))


@pytest.mark.parametrize(("count", "rate"), [(50_000, 0.001), (20_000, 0.2)])
def test_large_batches_have_binomial_sizes_and_uniform_independent_members(count: int, rate: float) -> None:
    """The two cases take the two roads of NumPy's choice: few out of many, and many."""
    source, sampling, draws = NoiseSource.research(2), PoissonSampling(rate), 400
    batches = [sampling.draw(count, source) for _ in range(draws)]
    sizes = np.array([len(batch) for batch in batches])
    scaled = (sizes - count * rate) / math.sqrt(count * rate * (1 - rate))
    assert not alarms(float(stats.kstest(sizes + source.generator.random(draws), _smoothed(count, rate)).pvalue))
    assert abs(scaled.mean()) < 4.9 / math.sqrt(draws)
    assert not alarms(detectors.variance(scaled, 1.0))
    members = np.concatenate(batches)
    assert not alarms(detectors.pattern(np.bincount(members * 100 // count, minlength=100), np.full(100, 0.01)))
    common = sum(len(np.intersect1d(one, other)) for one, other in zip(batches[::2], batches[1::2], strict=True))
    assert not alarms(detectors.share(common, count * draws // 2, rate**2))


def _smoothed(count: int, rate: float) -> object:
    """The distribution function of a binomial number plus a uniform one."""

    def distribution(number: np.ndarray) -> np.ndarray:
        whole = np.floor(number)
        below = stats.binom.cdf(whole - 1, count, rate)
        return below + (number - whole) * stats.binom.pmf(whole, count, rate)

    return distribution


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, math.nan])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(PrivacyError):
        PoissonSampling(rate)
