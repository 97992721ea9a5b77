"""The matched filter against numerical derivatives of the positive loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedkge.attacks import make_attack
from fedkge.attacks.structure import estimate_relations
from fedkge.attacks.upload_difference import cosines
from fedkge.models import ModelShape, make_scorer
from tests.attacks import MODEL_CASES, random_rounds, shape_of, twin, view_of

TRIPLES = np.array([[0, 0, 1], [2, 1, 3], [0, 2, 1], [5, 0, 8], [4, 2, 4]], np.int32)
AUXILIARY = np.array([[0, 0, 2], [1, 0, 3], [6, 1, 7], [8, 1, 1], [3, 2, 5], [7, 2, 0], [2, 2, 6]], np.int32)


def loss_gradient(model: str, shape: ModelShape, entities, relations, triple, row: int) -> np.ndarray:
    """Central differences of log(1 + exp(-score)) by the numbers of one entity row."""
    entities = entities.astype(np.float64)
    gradient, step = np.zeros(entities.shape[1]), 1e-6
    for k in range(entities.shape[1]):
        losses = []
        for sign in (1, -1):
            moved = entities.copy()
            moved[row, k] += sign * step
            losses.append(np.logaddexp(0, -twin(model, shape, moved, relations, triple)))
        gradient[k] = (losses[0] - losses[1]) / (2 * step)
    return gradient


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    length = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / length) if length > 1e-9 else 0.0


@pytest.mark.parametrize(("model", "norm"), MODEL_CASES)
@pytest.mark.parametrize("adversary", ["server", "collusion"])
def test_scores_equal_the_formula(model: str, norm: int, adversary) -> None:
    rounds, shape = random_rounds(model, norm), shape_of(model, norm, 4)
    scorer = make_scorer(model, shape)
    view = view_of(adversary, scorer, rounds, auxiliary=AUXILIARY if adversary == "server" else None)
    expected = np.zeros(len(TRIPLES))
    for seen in rounds:
        relations = seen.relations if adversary == "collusion" else estimate_relations(scorer, seen.upload, AUXILIARY)
        difference = seen.upload.astype(np.float64) - seen.sent
        for place, triple in enumerate(TRIPLES):
            for row in (triple[0], triple[2]):
                gradient = loss_gradient(model, shape, seen.sent, relations, triple, row)
                expected[place] -= cosine(difference[row], gradient)
    name = "upload-difference" if adversary == "server" else "upload-difference-collusion"
    np.testing.assert_allclose(make_attack(name).score(view, TRIPLES), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("model", "norm"), MODEL_CASES)
def test_one_step_down_the_gradient_of_a_triple_is_recognised(model: str, norm: int) -> None:
    seen, shape = random_rounds(model, norm, rounds=1)[0], shape_of(model, norm, 4)
    upload = seen.sent.copy()
    for row in (0, 1):
        upload[row] -= 0.1 * loss_gradient(model, shape, seen.sent, seen.relations, TRIPLES[0], row)
    view = view_of("collusion", make_scorer(model, shape), [replace(seen, upload=upload)])
    scores = make_attack("upload-difference-collusion").score(view, TRIPLES)
    np.testing.assert_allclose(scores[0], 2.0, rtol=1e-3)
    np.testing.assert_array_equal(scores[[1, 3, 4]], 0.0)
    assert scores[2] < 2.0


def test_no_movement_has_no_direction() -> None:
    assert cosines(np.zeros((2, 3)), np.ones((2, 3))).tolist() == [0.0, 0.0]
