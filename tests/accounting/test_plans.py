"""Calibration, the filter, and triples with several owners."""

from __future__ import annotations

import math

import pytest

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.calibration import LEAST_NOISE, MOST_NOISE, calibrate
from fedkge.accounting.filters import RenyiFilter
from fedkge.accounting.owners import epsilon_of_owners, worst_epsilon
from fedkge.accounting.plans import EVENTS_OF, CostPlan
from fedkge.accounting.pld import PLDAccountant
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.mechanisms.events import Charge, Gaussian, SampledGaussian, SampledTest

RDP = make_accountant("rdp")
STEP = SampledGaussian(0.05, 1)


class Counting:
    """Counts the questions."""

    name, sound = "counting", True

    def __init__(self, accountant=RDP):
        self.accountant, self.asked = accountant, 0

    def epsilon(self, charges, delta):
        self.asked += 1
        return self.accountant.epsilon(charges, delta)


@pytest.mark.parametrize("epsilon", [0.1, 1, 8, 64])
@pytest.mark.parametrize("rate", [0.001, 0.05, 1])
def test_the_least_noise(rate, epsilon):
    def plan(noise):
        return [Charge(SampledGaussian(rate, noise), 200)]

    counting = Counting()
    noise = calibrate(plan, epsilon, 1e-5, counting)
    assert RDP.epsilon(plan(noise), 1e-5) <= epsilon
    assert noise == LEAST_NOISE or RDP.epsilon(plan(noise / 1.0011), 1e-5) > epsilon
    assert counting.asked <= 24


def test_a_schedule_is_calibrated_by_its_first_noise():
    def plan(noise):
        return [Charge(SampledGaussian(0.05, noise * 0.9**number), 20) for number in range(4)]

    accountant = PLDAccountant(interval=1e-3)
    noise = calibrate(plan, 4, 1e-5, accountant)
    assert 3.9 < accountant.epsilon(plan(noise), 1e-5) <= 4


def test_impossible_plans_say_what_would_be_possible():
    with pytest.raises(PrivacyError, match=r"failures of the tests alone exceed it.*smaller delta_t"):
        calibrate(lambda noise: [Charge(SampledTest(0.1, 1, 1, noise, 1e-3), 10)], 8, 1e-5, RDP)
    with pytest.raises(PrivacyError, match=r"even a noise multiplier of 10000 costs epsilon .*raise epsilon"):
        calibrate(lambda noise: [Charge(Gaussian(1)), Charge(Gaussian(noise))], 1, 1e-5, RDP)
    with pytest.raises(ConfigurationError, match="above 0"):
        calibrate(lambda noise: [Charge(Gaussian(noise))], 0, 1e-5, RDP)
    assert calibrate(lambda noise: [Charge(Gaussian(noise))], 1e9, 1e-5, RDP) == LEAST_NOISE
    assert calibrate(lambda noise: [Charge(Gaussian(noise))], 0.01, 1e-5, RDP) < MOST_NOISE


def rounds_admitted(kept: RenyiFilter, charge: Charge) -> int:
    spent: list[Charge] = []
    while kept.admits(spent, [charge]) and len(spent) < 500:
        spent.append(charge)
    return len(spent)


def test_a_filter_stops_where_the_sum_would_when_all_goes_to_plan():
    charge = Charge(STEP, 20)
    most = max(count for count in range(1, 60) if RDP.epsilon([Charge(STEP, 20 * count)], 1e-5) <= 8)
    planned = RenyiFilter(8, 1e-5, planned=[Charge(STEP, 20 * most)])
    assert rounds_admitted(planned, charge) == most
    unplanned = rounds_admitted(RenyiFilter(8, 1e-5), charge)
    assert 0.5 * most < unplanned < most


def test_what_a_filter_admits_is_within_its_budget():
    for planned in ((), [Charge(STEP, 400)]):
        kept = RenyiFilter(4, 1e-6, planned)
        spent: list[Charge] = []
        for number in range(200):
            following = Charge(SampledGaussian(0.05, 0.8 + number % 5), 5)
            if kept.admits(spent, [following]):
                spent.append(following)
        assert spent
        assert RDP.epsilon(spent, 1e-6) <= 4
        assert kept.report == 4


def test_a_filter_counts_the_failures_of_tests():
    test = SampledTest(0.01, 5, 5, 5, 1e-6)
    kept = RenyiFilter(4, 1e-5, planned=[Charge(test, 100)])
    assert kept.admits([Charge(test, 50)], [Charge(test, 50)])
    assert not kept.admits([Charge(test, 50)], [Charge(test, 51)])
    assert not RenyiFilter(4, 1e-5).admits([], [Charge(test)])
    with pytest.raises(PrivacyError, match="expected more than the planned chance of failure"):
        RenyiFilter(4, 1e-5, planned=[Charge(test, 2000)])
    with pytest.raises(ConfigurationError, match="above 0"):
        RenyiFilter(0, 1e-5)


def test_owners_compose_and_strangers_do_not():
    small, large = [Charge(STEP, 10)], [Charge(STEP, 100)]
    clients = {"a": small, "b": large, "c": small, "d": small}
    assert worst_epsilon(clients, 1e-5, RDP) == RDP.epsilon(large, 1e-5)
    assert worst_epsilon(clients, 1e-5, RDP, owners=2) == RDP.epsilon([Charge(STEP, 110)], 1e-5)
    assert worst_epsilon(clients, 1e-5, RDP, owners=4) == RDP.epsilon([Charge(STEP, 130)], 1e-5)
    assert epsilon_of_owners([small, large], 1e-5, RDP) == RDP.epsilon([Charge(STEP, 110)], 1e-5)
    for owners in (0, 5):
        with pytest.raises(ConfigurationError, match="owners"):
            worst_epsilon(clients, 1e-5, RDP, owners)


def test_many_clients_are_bounded_without_trying_all_groups():
    alike = {f"client-{number}": [Charge(STEP, 3)] for number in range(40)}
    assert worst_epsilon(alike, 1e-5, RDP, owners=20) == RDP.epsilon([Charge(STEP, 60)], 1e-5)
    different = {f"client-{number}": [Charge(STEP, 1 + number)] for number in range(40)}
    every = RDP.epsilon([Charge(STEP, 820)], 1e-5)
    assert worst_epsilon(different, 1e-5, RDP, owners=20) == every
    assert math.isfinite(every)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"failure": 3.0}, "at most 0.5"), ({"failure": 0.0}, "above 0"), ({"gap": 0.0}, "above 0")],
)
def test_chances_and_noise_that_are_none_are_refused(options, problem):
    with pytest.raises(ConfigurationError, match=problem):
        CostPlan("ptr", batch=64, triples=90_000, steps=1, **options)


def test_the_default_chance_of_a_wrong_pass_is_a_chance():
    assert CostPlan("ptr", batch=64, triples=9_000_000, steps=1, delta=0.01).delta_t == 0.5


@pytest.mark.parametrize("mechanism", EVENTS_OF)
def test_every_mechanism_costs_less_with_more_noise_and_more_with_more_steps(mechanism):
    plan = CostPlan(mechanism, batch=64, triples=90_000, steps=100)
    accountant = RDP if math.isfinite(RDP.epsilon(plan.charges(1.0), 1e-5)) else make_accountant("published")
    assert accountant.sound is (mechanism != "published")
    loud, quiet = (accountant.epsilon(plan.charges(noise), 1e-5) for noise in (2.0, 1.0))
    longer = CostPlan(mechanism, batch=64, triples=90_000, steps=100, rounds=5, failure=plan.delta_t / 10)
    assert loud < quiet < accountant.epsilon(longer.charges(1.0), 1e-5)
