"""Scores of all models equal the paper's formulas; every registered model has a case."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.base.errors import ConfigurationError
from fedkge.models import MODELS, ModelShape, make_scorer

from .conftest import MODEL_CASES

TRIPLES = np.array([[0, 0, 1], [2, 1, 2], [6, 2, 0], [3, 0, 3]], dtype=np.int32)


def test_every_registered_model_has_a_case():
    assert set(MODELS) == {name for name, _ in MODEL_CASES}


@pytest.mark.parametrize("side", ["tail", "head"])
def test_scores_equal_the_formula_from_either_side(case, side):
    expected = [case.twin(*triple) for triple in TRIPLES]
    np.testing.assert_allclose(case.embedding.score_triples(TRIPLES, side), expected, rtol=1e-12)


@pytest.mark.parametrize("side", ["tail", "head"])
def test_candidate_scores_equal_the_formula(case, side):
    out = np.empty((len(TRIPLES), 7))
    case.embedding.score(TRIPLES, side, out)
    for i, (head, relation, tail) in enumerate(TRIPLES):
        for candidate in range(7):
            triple = (head, relation, candidate) if side == "tail" else (candidate, relation, tail)
            assert out[i, candidate] == pytest.approx(case.twin(*triple), rel=1e-12)


def test_an_unknown_model_lists_the_near_ones():
    with pytest.raises(ConfigurationError, match="did you mean transe"):
        make_scorer("transee", ModelShape())


def test_transe_refuses_other_norms():
    with pytest.raises(ConfigurationError, match="norm 1 or 2, got 3"):
        make_scorer("transe", ModelShape(norm=3))
