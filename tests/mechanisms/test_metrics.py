"""A mean with noise: what one triple changes, the law of the noise, what it costs, and planted bugs.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.accounting.pld import PLDAccountant
from fedkge.accounting.rdp import RDPAccountant
from fedkge.base.errors import PrivacyError
from fedkge.mechanisms import metrics
from fedkge.mechanisms.counts import two_sided
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.metrics import GRID, SUM_PART, NoisyMean, cost_of, shares_of
from fedkge.mechanisms.noise import NoiseSource
from tests.statistical import detectors
from tests.statistical.detectors import alarms

TRIALS = 20_000


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=30), place=st.integers(0, 29), seed=st.integers(0, 1000))
def test_one_triple_changes_the_sum_by_at_most_one_and_the_number_by_one(values, place, seed):
    """With the same coins, a triple less moves both by no more than the noise was made for."""
    shares = shares_of(np.array(values))
    less = np.delete(shares, place % len(shares))
    one, other = (NoisyMean.release(each, 1.0, NoiseSource.research(seed)) for each in (shares, less))
    assert 0 <= one.total - other.total <= GRID
    assert one.number - other.number == 1


def draws(epsilon: float, shares: np.ndarray, trials: int = TRIALS) -> tuple[np.ndarray, np.ndarray]:
    source = NoiseSource.research(11)
    means = [NoisyMean.release(shares, epsilon, source) for _ in range(trials)]
    return np.array([mean.total for mean in means]), np.array([mean.number for mean in means])


def law(scale: float, edges: np.ndarray) -> np.ndarray:
    """The chances of a two-sided geometric number below the first edge, between edges, and from the last on."""
    fall = math.exp(-1 / scale)
    below = np.where(
        edges <= 0, fall ** (1 - np.minimum(edges, 0)) / (1 + fall), 1 - fall ** np.maximum(edges, 0) / (1 + fall)
    )
    return np.diff(np.concatenate(([0.0], below, [1.0])))


def table(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)


@pytest.mark.parametrize("is_wrong", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_sum_and_number_have_the_noise_that_is_paid_for(epsilon, is_wrong, monkeypatch):
    """Planted: noise at half its scale."""
    if is_wrong:
        monkeypatch.setattr(metrics, "two_sided", lambda size, scale, source: two_sided(size, scale / 2, source))
    shares = shares_of(np.linspace(0, 1, 40))
    totals, numbers = draws(epsilon, shares)
    for noise, scale in (
        (totals - shares.sum(), GRID / (SUM_PART * epsilon)),
        (numbers - len(shares), 1 / ((1 - SUM_PART) * epsilon)),
    ):
        edges = np.unique(np.rint(scale * np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])).astype(np.int64))
        assert alarms(detectors.pattern(table(noise, edges), law(scale, edges))) is is_wrong


@pytest.mark.parametrize("is_wrong", [False, True])
def test_an_audit_stays_below_the_price_and_finds_a_sum_that_is_not_bounded(is_wrong):
    """The best guess of whether one triple of share 1 is there: by the likelihood ratio of sum and number together.

    Planted: a triple that counts twice, as one that is held out twice would.
    """
    epsilon, one = 2.0, shares_of(np.array([1.0]))
    there = np.concatenate((one, one)) if is_wrong else one
    scales = GRID / (SUM_PART * epsilon), 1 / ((1 - SUM_PART) * epsilon)

    def ratios(shares: np.ndarray) -> np.ndarray:
        totals, numbers = draws(epsilon, shares)
        return (np.abs(totals) - np.abs(totals - GRID)) / scales[0] + (np.abs(numbers) - np.abs(numbers - 1)) / scales[
            1
        ]

    accused, wrongly = ((ratios(shares) > 1.9).mean() for shares in (there, one[:0]))
    measured = math.log(accused / wrongly)
    assert (measured > epsilon + 0.15) is is_wrong


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_figure_costs_its_epsilon(epsilon):
    charge = [Charge(cost_of(epsilon))]
    assert PLDAccountant().epsilon(charge, 1e-5) == pytest.approx(epsilon, abs=2e-3)
    assert PLDAccountant().epsilon(charge, 1e-5) >= epsilon - 1e-4
    assert RDPAccountant().epsilon(charge, 1e-5) >= epsilon - 1e-4
    assert NoisyMean(1, 1, epsilon).event() == cost_of(epsilon)


def test_what_is_shown_follows_from_what_was_released():
    assert NoisyMean(-5, 10, 1.0).value == 0
    assert NoisyMean(20 * GRID, 10, 1.0).value == 1
    assert NoisyMean(5 * GRID, -3, 1.0).value == 1
    assert NoisyMean(0, -3, 1.0).deviation == 1
    assert NoisyMean(250 * GRID, 1000, 1.0).value == 0.25
    values = [NoisyMean.release(shares_of(np.full(1000, 0.25)), 1.0, NoiseSource.research(n)).value for n in range(400)]
    assert np.std(values) == pytest.approx(NoisyMean(250 * GRID, 1000, 1.0).deviation, rel=0.25)


@pytest.mark.parametrize("shares", [np.array([-1]), np.array([GRID + 1]), np.array([0.5]), np.array([[1]])])
def test_shares_out_of_bounds_are_refused(shares):
    with pytest.raises(PrivacyError, match="one whole number from 0 to"):
        NoisyMean.release(shares, 1.0, NoiseSource.research(1))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_an_epsilon_that_buys_nothing_is_refused(epsilon):
    with pytest.raises(PrivacyError, match="epsilon above 0"):
        NoisyMean.release(shares_of(np.array([1.0])), epsilon, NoiseSource.research(1))
