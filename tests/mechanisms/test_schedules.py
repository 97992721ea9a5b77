"""Each noise schedule by name; the tests are in `ScheduleCase`."""

from __future__ import annotations

import pytest

from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms import ByValidation, Constant, GeometricDecay
from tests.cases.schedules import ScheduleCase


class TestConstant(ScheduleCase):
    name = "constant"


class TestDecay(ScheduleCase):
    name = "decay"


class TestValidation(ScheduleCase):
    name = "validation"


def test_schedules_say_whether_they_adapt() -> None:
    assert not Constant(1.0).adaptive
    assert not GeometricDecay(1.0).adaptive
    assert ByValidation(1.0).adaptive


def test_noise_falls_only_after_validations_that_gained_too_little() -> None:
    rule = ByValidation(2.0)
    assert rule.multiplier(1) == 2.0
    assert rule.multiplier(2, [0.1]) == 2.0
    assert rule.multiplier(3, [0.1, 0.2]) == 2.0
    assert rule.multiplier(4, [0.1, 0.2, 0.2005]) == pytest.approx(2.0 * 0.95)
    assert rule.multiplier(6, [0.1, 0.2, 0.2005, 0.15, 0.3]) == pytest.approx(2.0 * 0.95**2)


def test_impossible_schedules_are_refused() -> None:
    for make in (lambda: Constant(0.0), lambda: GeometricDecay(1.0, 1.1), lambda: GeometricDecay(1.0, 0.5, 0)):
        with pytest.raises(ConfigurationError):
            make()
