"""Each attack by name; the tests are in `AttackCase`."""

from __future__ import annotations

import pytest

from fedkge.attacks import make_attack
from fedkge.base.errors import ConfigurationError
from tests.cases.attacks import AttackCase

DISTANCE_MODELS = ("transe", "rotate")


class TestSIPublished(AttackCase):
    name = "si-published"
    reads = ("upload", "auxiliary")
    models = DISTANCE_MODELS
    least = None
    scores_unknown_relations = True


class TestSICentres(AttackCase):
    name = "si-centres"
    reads = ("upload", "auxiliary")
    models = DISTANCE_MODELS
    least = 0.8


class TestSILink(AttackCase):
    name = "si-link"
    reads = ("upload", "auxiliary")
    models = DISTANCE_MODELS
    least = 0.75
    scores_unknown_relations = True


class TestSICollusion(AttackCase):
    name = "si-collusion"
    reads = ("upload", "relations")
    models = DISTANCE_MODELS
    least = 0.65


class TestCIPPublished(AttackCase):
    name = "cip-published"
    reads = ("own_upload", "result", "relations")
    least = None


class TestCIP(AttackCase):
    name = "cip"
    reads = ("own_upload", "result", "relations")
    least = 0.57


class TestCIPDistanceRatio(AttackCase):
    name = "cip-distance-ratio"
    reads = ("own_upload", "result", "relations")
    models = DISTANCE_MODELS


class TestCIPMatched(AttackCase):
    name = "cip-matched"
    reads = ("sent", "own_upload", "result", "relations")


class TestCIPCollusion(AttackCase):
    name = "cip-collusion"
    reads = ("upload", "relations")
    least = 0.57


class TestUploadDifference(AttackCase):
    name = "upload-difference"
    reads = ("sent", "upload", "auxiliary")
    least = 0.75


class TestUploadDifferenceCollusion(AttackCase):
    name = "upload-difference-collusion"
    reads = ("sent", "upload", "relations")


class TestUploadCombined(AttackCase):
    name = "upload-combined"
    reads = ("sent", "upload", "auxiliary")
    least = 0.75


class TestTrajectory(AttackCase):
    name = "trajectory"
    reads = ("sent", "upload", "auxiliary")
    least = 0.7


class TestTrajectoryCollusion(AttackCase):
    name = "trajectory-collusion"
    reads = ("sent", "upload", "relations")


def test_an_unknown_attack_is_an_error_that_names_the_near_ones() -> None:
    with pytest.raises(ConfigurationError, match="si-centres"):
        make_attack("si-centers")
