"""Each defence by name; the tests are in `DefenceCase`."""

from __future__ import annotations

from tests.cases.defences import DefenceCase

STEPS = {"batch_size": 32, "local_steps": 3, "accountant": "rdp"}


class TestNone(DefenceCase):
    name = "none"
    promises = False


class TestDpsgd(DefenceCase):
    name = "dpsgd"
    extra = STEPS


class TestDpFlames(DefenceCase):
    name = "dp-flames"
    extra = STEPS


class TestDpFlamesAdaptive(DefenceCase):
    name = "dp-flames-adaptive"
    extra = STEPS


class TestNoisySteps(DefenceCase):
    name = "noisy-steps"
    extra = STEPS


class TestRecommended(DefenceCase):
    name = "recommended"
