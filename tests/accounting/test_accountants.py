"""What accountants promise: order, monotony, soundness against a direct computation, and the library's trap."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.special import log_ndtr, ndtr

from fedkge.accounting.accountants import make_accountant, merged
from fedkge.accounting.pld import PLDAccountant, composed, interval_for
from fedkge.accounting.privacy_profiles import (
    bounded_range_delta,
    sampled_gaussian_distribution,
    sampled_test_distribution,
    unsampled_delta,
)
from fedkge.accounting.published import PublishedAccountant
from fedkge.accounting.rdp import RDPAccountant, curve
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import (
    Charge,
    Gaussian,
    PublishedGaussian,
    PublishedTest,
    SampledGaussian,
    SampledPair,
    SampledTest,
)
from tests.cases.accountants import SOUND_EVENTS, AccountantCase

PLD, RDP = PLDAccountant(), RDPAccountant()


class TestPLD(AccountantCase):
    name = "pld"

    def test_losses_are_tighter_than_orders(self):
        for event in SOUND_EVENTS:
            charges = [Charge(event, 20)]
            assert PLD.epsilon(charges, 1e-5) <= RDP.epsilon(charges, 1e-5)


class TestRDP(AccountantCase):
    name = "rdp"


class TestPublished(AccountantCase):
    name = "published"
    sound = False
    events = (SampledGaussian(0.001, 2), SampledTest(0.001, 1, 1, 1, 1e-9), PublishedGaussian(0.0005, 1.0))


def test_an_unknown_accountant_names_the_near_ones():
    with pytest.raises(ConfigurationError, match="did you mean rdp"):
        make_accountant("rpd")


def test_the_published_formulas_know_three_events():
    published = PublishedAccountant(respect_alpha_range=False)
    all_passed, none_passed = (
        published.epsilon([Charge(PublishedTest(0.01, 1, 1, 1, 1e-6, passed=share), 100)], 1e-5) for share in (1, 0)
    )
    assert all_passed == published.epsilon([Charge(SampledTest(0.01, 1, 1, 1, 1e-6), 100)], 1e-5) > none_passed
    assert published.epsilon([], 1e-5) == 0
    with pytest.raises(ConfigurationError, match="prints no formula for SampledPair"):
        published.epsilon([Charge(SampledPair(0.1, 1, 1))], 1e-5)
    assert PublishedAccountant().epsilon([Charge(SampledGaussian(0.9, 1))], 1e-5) == math.inf


def test_the_published_numbers_are_below_what_is_certain():
    """At small noise the printed formula promises far more than even the exact losses of the gradient alone allow."""
    charges = [Charge(SampledGaussian(64 / 90000, 0.5), 10_000)]
    assert PublishedAccountant(respect_alpha_range=False).epsilon(charges, 1e-5) < PLD.epsilon(charges, 1e-5) / 2


def test_an_integer_costs_as_much_as_its_float():
    """The trap: with an integer, the library counts only the first of two Gaussians on one batch, and says nothing."""

    def by_the_library(kind):
        pair = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(kind(2)), dp_event.GaussianDpEvent(kind(1))])
        return RdpAccountant().compose(dp_event.PoissonSampledDpEvent(0.01, pair), 1000).get_epsilon(1e-5)

    expected = by_the_library(float)
    for kind in (float, int, np.int64, np.float32, np.float64):
        event = SampledPair(rate=0.01, selection=kind(2), gradient=kind(1))
        assert RDP.epsilon([Charge(event, 1000)], 1e-5) == pytest.approx(expected, rel=1e-12)
        assert type(event.selection) is type(event.gradient) is float
        assert PLD.epsilon([Charge(SampledGaussian(1, kind(2)), 4)], 1e-5) == PLD.epsilon([Charge(Gaussian(1))], 1e-5)


@pytest.mark.parametrize("rate", [0.0007, 0.05, 0.5, 0.999])
@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0])
def test_the_sampled_gaussian_is_that_of_the_library(rate, noise):
    ours = sampled_gaussian_distribution(noise, rate, 1e-3)
    theirs = from_gaussian_mechanism(noise, value_discretization_interval=1e-3, sampling_prob=rate)
    for steps in (1, 50):
        mine, library = (one if steps == 1 else one.self_compose(steps) for one in (ours, theirs))
        for epsilon in (0.0, 0.01, 0.1, 1.0, 5.0):
            expected = library.get_delta_for_epsilon(epsilon)
            assert mine.get_delta_for_epsilon(epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_test_without_selection_is_the_sampled_gaussian():
    """With a range of nearly nothing, our losses are those of the library, in both directions."""
    rate, noise = 0.02, 1.3
    ours = SampledTest(rate, gap=1e7, test=noise * 2**0.5, gradient=noise * 2**0.5, failure=1e-30)
    for interval in (1e-3, 4e-4):
        accountant = PLDAccountant(interval)
        library = accountant.epsilon([Charge(SampledGaussian(rate, noise), 500)], 1e-6)
        assert accountant.epsilon([Charge(ours, 500)], 1e-6) == pytest.approx(library, rel=1e-5)


def test_the_profile_of_a_batch_that_surely_holds_the_triple():
    """Arg max, test and gradient together, against a two-point mechanism with a Gaussian, integrated directly."""
    event = SampledTest(1, gap=1.5, test=2, gradient=3, failure=1e-9)
    width, noise = 1.0, (1 / 4 + 1 / 9) ** -0.5
    points = np.linspace(-12, 12, 40_001)
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    for share in np.linspace(-0.9 * width, 0, 7):
        # A mechanism of range `width`: log ratios share and share + width.
        first = (1 - math.exp(share)) / (math.exp(share + width) - math.exp(share))
        ratios = {share: (1 - first) * math.exp(share), share + width: first * math.exp(share + width)}
        for epsilon in (-0.5, 0.0, 0.3, 1.0, 2.0):
            exact = 0.0
            for loss, mass in ratios.items():
                losses = loss + points / noise + 0.5 / noise**2
                exact += (
                    mass
                    * float(np.sum(np.maximum(0, 1 - np.exp(epsilon - losses)) * density))
                    * (points[1] - points[0])
                )
            assert exact <= unsampled_delta(event, np.array([epsilon]))[0] + 1e-6


@pytest.mark.parametrize(("gap", "noise"), [(1.0, 1.0), (0.1, 5.0), (0.05, 20.0), (30.0, 0.3)])
def test_the_composed_profile_is_integrated_finely_enough(gap, noise):
    event = SampledTest(0.1, gap=gap, test=noise * 2**0.5, gradient=noise * 2**0.5, failure=1e-9)
    width = 1.5 / gap
    edges = np.linspace(-width, width, 200_001)
    losses = (edges[1:] + edges[:-1]) / 2
    masses = np.diff(np.exp((edges - width) / 2)) / -math.expm1(-width)
    for epsilon in (-0.5, 0.0, 0.9 * width, width + 1 / noise):
        upper = ndtr(0.5 / noise - (epsilon - losses) * noise)
        lower = np.exp(epsilon - losses + log_ndtr(-0.5 / noise - (epsilon - losses) * noise))
        expected = float((masses * (upper - lower)).sum())
        assert unsampled_delta(event, np.array([epsilon]))[0] == pytest.approx(expected, rel=1e-5)


def test_a_very_small_delta_over_many_steps_still_has_an_epsilon():
    charges = [Charge(SampledGaussian(0.0007, 1), 100_000)]
    assert PLDAccountant(1e-3).epsilon(charges, 1e-11) < RDP.epsilon(charges, 1e-11) < 10


@settings(max_examples=50, deadline=None)
@given(
    scores=some.lists(some.floats(-3, 3), min_size=2, max_size=6),
    shifts=some.lists(some.floats(0, 1), min_size=6, max_size=6),
    epsilon=some.floats(-1, 1),
)
def test_no_exponential_mechanism_beats_the_bounded_range_profile(scores, shifts, epsilon):
    utilities = np.array(scores)
    one, other = (np.exp(values) / np.exp(values).sum() for values in (utilities, utilities + shifts[: len(scores)]))
    for first, second in ((one, other), (other, one)):
        delta = float(np.maximum(0, first - math.exp(epsilon) * second).sum())
        assert delta <= bounded_range_delta(1.0, epsilon) + 1e-12


def test_sampled_profiles_are_above_the_truth_at_every_grid_point():
    event = SampledTest(0.1, gap=2, test=1, gradient=1, failure=1e-9)
    losses = sampled_test_distribution(event, 0.01)
    for epsilon in (0.0, 0.1, 0.35, 0.7, 1.5):
        inner = math.log1p(math.expm1(epsilon) / 0.1)
        truth = 0.1 * unsampled_delta(event, np.array([inner]))[0]
        assert truth <= losses.get_delta_for_epsilon(epsilon) <= truth * 1.01 + 1e-6


def test_coarser_grids_only_cost_more():
    charges = (Charge(SampledGaussian(0.05, 1), 200),)
    epsilons = [composed(charges, interval).get_epsilon_for_delta(1e-5) for interval in (1e-4, 1e-3, 1e-2)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] < 1.02 * epsilons[0]


def test_the_grid_follows_the_work():
    assert interval_for([Charge(SampledGaussian(0.05, 1), 1000)]) == 1e-4
    assert interval_for([Charge(SampledGaussian(0.05, 0.01), 1)]) > 1e-2
    schedule = [Charge(SampledGaussian(0.05, 1 + number / 100), 10) for number in range(100)]
    assert 1e-3 < interval_for(schedule) < 2e-3
    assert math.isfinite(PLD.epsilon([Charge(SampledGaussian(0.05, 0.05), 3)], 1e-5))


def test_a_query_over_a_hundred_rounds_is_quick():
    event = SampledGaussian(4096 / 90000, 1.1)
    PLD.epsilon([Charge(event, 22)], 1e-5)
    began = time.process_time()
    PLD.epsilon([Charge(event, 2200)], 1e-5)
    assert time.process_time() - began < 2


def test_a_schedule_that_grows_reuses_what_is_known():
    schedule = [Charge(SampledGaussian(0.05, 2 * 0.97**number), 10) for number in range(5)]
    PLD.epsilon(schedule[:4], 1e-5)
    began = time.process_time()
    PLD.epsilon(schedule[:4], 1e-6)
    assert time.process_time() - began < 0.2


@pytest.mark.slow
def test_a_hundred_different_events_are_composed_in_time():
    schedule = [Charge(SampledGaussian(4096 / 90000, 2 * 0.99**number), 10) for number in range(100)]
    began = time.process_time()
    epsilon = PLD.epsilon(schedule, 1e-5)
    assert time.process_time() - began < 20
    assert epsilon <= RDP.epsilon(schedule, 1e-5)


def test_merging_refuses_negative_steps():
    with pytest.raises(ConfigurationError, match="steps"):
        merged([Charge(Gaussian(1), -1)])


def test_curves_never_fall_with_the_order():
    for event in SOUND_EVENTS:
        assert (np.diff(curve(event)) >= -1e-12).all()
