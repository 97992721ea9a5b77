"""What every accountant must do: grow with steps, fall with delta, and if it is sound, be an upper bound."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest

from fedkge.accounting.accountants import Accountant, make_accountant
from fedkge.accounting.promises import Promise
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import (
    Charge,
    Event,
    Gaussian,
    PublishedGaussian,
    PublishedTest,
    SampledGaussian,
    SampledPair,
    SampledTest,
)
from tests.cases import Case
from tests.reference.formulas import epsilon_of_gaussian

TEST = SampledTest(rate=0.01, gap=1, test=2, gradient=2, failure=1e-9)
SOUND_EVENTS: tuple[Event, ...] = (
    Gaussian(20),
    SampledGaussian(0.01, 2),
    SampledPair(0.01, 3, 3),
    TEST,
    SampledTest(1, 50, 50, 50, 1e-9),
)
UNSOUND_EVENTS: tuple[Event, ...] = (PublishedTest(0.1, 1, 1, 1, 1e-6, passed=0), PublishedGaussian(0.001, 1.0))


class AccountantCase(Case):
    """A registered accountant. A subclass names it, and says whether it is sound and which events it knows."""

    sound: ClassVar[bool] = True
    events: ClassVar[tuple[Event, ...]] = SOUND_EVENTS

    def make(self) -> Accountant:
        return make_accountant(self.name)

    def test_the_registry_builds_what_it_names(self) -> None:
        assert self.make().name == self.name
        assert self.make().sound is self.sound

    def test_what_was_not_done_costs_nothing(self) -> None:
        assert self.make().epsilon([], 1e-5) == 0
        assert self.make().epsilon([Charge(self.events[0], 0)], 1e-5) == 0

    @pytest.mark.parametrize("delta", [0, 1, -1, 2, math.nan])
    def test_a_delta_outside_of_its_range_is_refused(self, delta: float) -> None:
        with pytest.raises(ConfigurationError, match="delta"):
            self.make().epsilon([Charge(self.events[-1])], delta)

    def test_epsilon_grows_with_steps_and_falls_with_delta(self) -> None:
        for event in self.events:
            accountant, charges = self.make(), [Charge(event, 20)]
            one = accountant.epsilon(charges, 1e-5)
            assert 0 < one < 20
            assert accountant.epsilon([Charge(event, 40)], 1e-5) > one
            assert accountant.epsilon([*charges, Charge(self.events[0])], 1e-5) > one
            assert accountant.epsilon(charges, 1e-4) < one

    def test_equal_events_cost_the_same_in_any_parts_and_order(self) -> None:
        accountant = self.make()
        for event in self.events:
            one = accountant.epsilon([Charge(event, 20)], 1e-5)
            assert accountant.epsilon([Charge(event, 10), Charge(event, 10)], 1e-5) == one
        charges = [Charge(event, number + 1) for number, event in enumerate(self.events)]
        forth, back = accountant.epsilon(charges, 1e-5), accountant.epsilon(charges[::-1], 1e-5)
        assert forth == pytest.approx(back, rel=1e-6)

    def test_an_integer_costs_as_much_as_its_float(self) -> None:
        costs = {
            self.make().epsilon([Charge(SampledGaussian(0.001, kind(2)), 100)], 1e-5)
            for kind in (int, float, np.int64, np.float32)
        }
        assert len(costs) == 1

    def test_a_promise_may_name_it(self) -> None:
        assert Promise("client-0", delta=1e-5, accountant=self.name).accountant == self.name

    # -- where it is sound --------------------------------------------------------------------------------------------

    def test_what_guarantees_nothing_costs_everything(self) -> None:
        if self.sound:
            for event in UNSOUND_EVENTS:
                assert self.make().epsilon([Charge(event)], 1e-5) == math.inf
            assert self.make().epsilon([Charge(TEST, 10**6)], 1e-5) == math.inf  # failures alone exceed delta

    @pytest.mark.parametrize("multiplier", [0.7, 2.0, 30.0])
    def test_a_sound_epsilon_is_never_below_the_exact_one(self, multiplier: float) -> None:
        if self.sound:
            for steps in (1, 9):
                found = self.make().epsilon([Charge(Gaussian(multiplier * math.sqrt(steps)), steps)], 1e-5)
                exact = epsilon_of_gaussian(multiplier, 1e-5)
                assert exact <= found * (1 + 1e-9) < 1.5 * exact + 0.1
