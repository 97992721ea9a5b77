"""What every noise schedule must do: start at its base, keep its least noise, follow history only if it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms import SCHEDULES, Schedule, ScheduleSettings
from tests.cases import Case

HISTORIES = st.lists(st.floats(0, 1), max_size=8)


class ScheduleCase(Case):
    """A registered noise schedule."""

    def make(self, base: float = 2.0, decay: float = 0.5) -> Schedule:
        settings = ScheduleSettings(base, decay, least_gain=0.001, validation_rounds=1)
        return SCHEDULES[self.name].build(settings)

    def test_the_registry_builds_what_it_names(self) -> None:
        assert type(self.make()) is SCHEDULES[self.name]
        assert self.make().name == self.name

    @given(st.floats(0.1, 50), st.floats(0.1, 1))
    def test_the_first_round_has_the_base(self, base: float, decay: float) -> None:
        """The budget is calibrated to it."""
        assert self.make(base, decay).multiplier(1) == base
        assert self.make(base, decay).least(1) == base

    @given(HISTORIES, st.floats(0.1, 1))
    def test_no_round_has_less_than_its_least_noise(self, history: list[float], decay: float) -> None:
        schedule, number = self.make(decay=decay), len(history) + 1
        multiplier = schedule.multiplier(number, history)
        assert np.isfinite(multiplier)
        assert 0 < schedule.least(number) <= multiplier * (1 + 1e-12)
        assert schedule.least(number) <= schedule.least(max(1, number - 1)) * (1 + 1e-12)

    @given(HISTORIES, HISTORIES)
    def test_only_an_adaptive_one_follows_the_history(self, one: list[float], other: list[float]) -> None:
        if not SCHEDULES[self.name].adaptive:
            assert self.make().multiplier(9, one) == self.make().multiplier(9, other)
            assert self.make().least(9) == self.make().multiplier(9)

    def test_an_adaptive_one_does_follow_it(self) -> None:
        found = {self.make().multiplier(4, history) for history in ([0.1, 0.2, 0.3], [0.3, 0.3, 0.3])}
        assert (len(found) > 1) is SCHEDULES[self.name].adaptive

    @pytest.mark.parametrize("base", [0.0, -1.0, float("inf"), float("nan")])
    def test_a_base_that_is_no_noise_is_refused(self, base: Any) -> None:
        with pytest.raises(ConfigurationError, match="positive noise multiplier"):
            self.make(base)
