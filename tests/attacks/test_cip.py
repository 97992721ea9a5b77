"""CIP against loops over its formulas."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.attacks import make_attack
from fedkge.attacks.cip import TINY, extract, ratio
from fedkge.base.errors import DataError
from fedkge.models import make_scorer
from tests.attacks import MODEL_CASES, random_rounds, shape_of, twin, view_of
from tests.attacks.test_upload_difference import cosine, loss_gradient

TRIPLES = np.array([[0, 0, 1], [2, 1, 3], [4, 2, 4], [5, 0, 8]], np.int32)


def extracted_row(result: np.ndarray, own: np.ndarray, number: int) -> np.ndarray:
    return np.array([(number * b - u) / (number - 1) for b, u in zip(result, own, strict=True)])


@pytest.mark.parametrize(("model", "norm"), MODEL_CASES)
@pytest.mark.parametrize("known_owners", [False, True])
def test_scores_equal_the_formulas(model: str, norm: int, known_owners: bool) -> None:
    rounds, shape = random_rounds(model, norm), shape_of(model, norm, 4)
    owners = np.array([2, 3, 4, 2, 3, 4, 2, 3, 4]) if known_owners else np.full(9, 5)
    scorer = make_scorer(model, shape)
    view = view_of("client", scorer, rounds, clients=5, owners=owners if known_owners else None)
    last = rounds[-1]
    rows = np.stack([extracted_row(last.result[e], last.own_upload[e], owners[e]) for e in range(9)])
    first = np.array([twin(model, shape, rows, last.relations, triple) for triple in TRIPLES])
    second = np.array([twin(model, shape, last.own_upload, last.relations, triple) for triple in TRIPLES])
    close = {"rtol": 2e-4, "atol": 2e-4}
    np.testing.assert_allclose(make_attack("cip").score(view, TRIPLES), first, **close)
    np.testing.assert_allclose(make_attack("cip-published").score(view, TRIPLES), first / second, **close)
    if model in ("transe", "rotate"):
        expected = (shape.margin - second) / (shape.margin - first)
        np.testing.assert_allclose(make_attack("cip-distance-ratio").score(view, TRIPLES), expected, **close)


@pytest.mark.parametrize(("model", "norm"), MODEL_CASES)
def test_collusion_scores_under_the_raw_upload(model: str, norm: int) -> None:
    rounds, shape = random_rounds(model, norm), shape_of(model, norm, 4)
    view = view_of("collusion", make_scorer(model, shape), rounds)
    expected = [twin(model, shape, rounds[-1].upload, rounds[-1].relations, triple) for triple in TRIPLES]
    np.testing.assert_allclose(make_attack("cip-collusion").score(view, TRIPLES), expected, rtol=1e-4, atol=1e-4)


def test_extraction_gives_back_the_other_clients_mean() -> None:
    generator = np.random.default_rng(1)
    own, second, third = generator.normal(size=(3, 6, 4))
    np.testing.assert_allclose(extract(own, (own + second + third) / 3, 3), (second + third) / 2)


@pytest.mark.parametrize("name", ["cip", "cip-published", "cip-distance-ratio", "cip-matched"])
def test_of_rows_that_nobody_else_moved_nothing_is_known_and_rows_of_others_are_refused(name: str) -> None:
    """A federation on noisy copies may leave a row alone; it is the client's own all the same."""
    rounds = random_rounds("transe")
    for seen in rounds:
        seen.result[4] = seen.own_upload[4]
    view = view_of("client", make_scorer("transe", shape_of("transe", 1, 4)), rounds)
    unmoved = (TRIPLES[:, [0, 2]] == 4).any(axis=1)
    scores = make_attack(name).score(view, TRIPLES)
    assert np.count_nonzero(unmoved) == 1
    assert scores[unmoved] == scores.min()
    for seen in rounds:
        seen.own_upload[4] = np.nan
    with pytest.raises(DataError, match=r"1 of 4 target triples have target entities outside the overlap.*--fraction"):
        make_attack(name).score(view, TRIPLES)


def test_targets_whose_owners_sat_the_newest_round_out_are_scored_in_the_one_before() -> None:
    rounds, shape = random_rounds("transe"), shape_of("transe", 1, 4)
    rounds[-1].result[[2, 4]] = rounds[-1].own_upload[[2, 4]]
    view = view_of("client", make_scorer("transe", shape), rounds, clients=3)
    newest, before = (
        np.array([make_attack("cip").score(view.until(number), TRIPLES[[place]])[0] for place in range(4)])
        for number in (2, 1)
    )
    scores = make_attack("cip").score(view, TRIPLES)
    np.testing.assert_allclose(scores[[0, 3]], newest[[0, 3]])
    np.testing.assert_allclose(scores[[1, 2]], before[[1, 2]])


@pytest.mark.parametrize(("model", "norm"), MODEL_CASES)
def test_matched_is_the_sum_of_the_others_cosines(model: str, norm: int) -> None:
    rounds, shape = random_rounds(model, norm), shape_of(model, norm, 4)
    view = view_of("client", make_scorer(model, shape), rounds, clients=3)
    expected = np.zeros(len(TRIPLES))
    for seen in rounds:
        moved = np.stack([extracted_row(seen.result[e], seen.own_upload[e], 3) for e in range(9)]) - seen.sent
        for place, triple in enumerate(TRIPLES):
            for row in (triple[0], triple[2]):
                gradient = loss_gradient(model, shape, seen.sent, seen.relations, triple, row)
                expected[place] -= cosine(moved[row], gradient)
    np.testing.assert_allclose(make_attack("cip-matched").score(view, TRIPLES), expected, rtol=1e-3, atol=1e-3)


def test_rows_with_a_single_owner_are_outside_the_overlap() -> None:
    rows = np.zeros((2, 3))
    assert np.isnan(extract(rows, rows + 1, np.array([1, 2]))[0]).all()
    assert np.isfinite(extract(rows, rows + 1, np.array([1, 2]))[1]).all()


def test_ratios_stay_finite_at_zero() -> None:
    np.testing.assert_allclose(ratio(np.array([1.0, 1.0]), np.array([0.0, 2.0])), [1 / TINY, 0.5])
