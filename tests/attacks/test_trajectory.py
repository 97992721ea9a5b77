"""Trajectory against a loop over its formula."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.attacks import make_attack
from fedkge.attacks.structure import estimate_relations
from fedkge.models import make_scorer
from tests.attacks import MODEL_CASES, random_rounds, shape_of, twin, view_of

TRIPLES = np.array([[0, 0, 1], [2, 1, 3], [4, 2, 4], [5, 0, 8]], np.int32)
AUXILIARY = np.array([[0, 0, 2], [1, 0, 3], [6, 1, 7], [8, 1, 1], [3, 2, 5], [7, 2, 0], [2, 2, 6]], np.int32)


@pytest.mark.parametrize(("model", "norm"), MODEL_CASES)
@pytest.mark.parametrize("adversary", ["server", "collusion"])
def test_scores_equal_the_formula(model: str, norm: int, adversary) -> None:
    rounds, shape = random_rounds(model, norm, rounds=3), shape_of(model, norm, 4)
    scorer = make_scorer(model, shape)
    view = view_of(adversary, scorer, rounds, auxiliary=AUXILIARY if adversary == "server" else None)
    expected = np.zeros(len(TRIPLES))
    for seen in rounds:
        relations = seen.relations if adversary == "collusion" else estimate_relations(scorer, seen.upload, AUXILIARY)
        for place, triple in enumerate(TRIPLES):
            expected[place] += twin(model, shape, seen.upload, relations, triple)
            expected[place] -= twin(model, shape, seen.sent, relations, triple)
    name = "trajectory" if adversary == "server" else "trajectory-collusion"
    np.testing.assert_allclose(make_attack(name).score(view, TRIPLES), expected, rtol=1e-3, atol=1e-4)


def test_a_relation_known_in_one_round_only_is_scored_from_that_round() -> None:
    rounds, scorer = random_rounds("transe", rounds=2), make_scorer("transe", shape_of("transe", 1, 4))
    full = make_attack("trajectory-collusion").score(view_of("collusion", scorer, rounds[1:]), TRIPLES[:1])
    rounds[0].relations[0] = np.nan
    scores = make_attack("trajectory-collusion").score(view_of("collusion", scorer, rounds), TRIPLES)
    np.testing.assert_allclose(scores[0], full[0], rtol=1e-5)
