"""Each model by name, with its formula; the tests are in `ModelCase`."""

from __future__ import annotations

from typing import Any

from tests.cases.models import DIMENSION, MARGIN, ModelCase
from tests.models import formulas


class TestTransE(ModelCase):
    name = "transe"

    def formula(self, head: Any, relation: Any, tail: Any) -> float:
        return formulas.transe(head, relation, tail, self.norm)


class TestTransEWithTheEuclideanNorm(TestTransE):
    norm = 2
    learns_up_to = 0.35


class TestRotatE(ModelCase):
    name = "rotate"

    def formula(self, head: Any, relation: Any, tail: Any) -> float:
        return formulas.rotate(head, relation, tail, phase_range=(MARGIN + 2.0) / DIMENSION)


class TestDistMult(ModelCase):
    name = "distmult"

    def formula(self, head: Any, relation: Any, tail: Any) -> float:
        return formulas.distmult(head, relation, tail)


class TestComplEx(ModelCase):
    name = "complex"

    def formula(self, head: Any, relation: Any, tail: Any) -> float:
        return formulas.complex_(head, relation, tail)
