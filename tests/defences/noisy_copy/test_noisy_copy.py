"""The noisy copy: what it asks, what it believes, and that it sees nothing but what was released."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fedkge.base.errors import RunError
from fedkge.defences import DEFENCES
from fedkge.defences.counts.denoising import Profile, Row
from fedkge.defences.noisy_copy import CopyPlan, CopyPrior, NoisyCopy, noisy_copy
from fedkge.defences.noisy_copy.expectation import Ends, asked_cells, ends_of, least_rate
from fedkge.defences.noisy_copy.noisy_copy import held_out, triples_of, truths
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models import Embedding, ModelShape, initial_tables, make_scorer

GRAPH = synthetic_graph(entities=200, relations=5, triples=4000, seed=3)
SIZES = len(GRAPH.entities), len(GRAPH.relations)
CLEAR = CopyPlan(profile_scale=0.1, epsilon=20.0)
NOISY = CopyPlan(profile_scale=0.5, epsilon=5.0)


def copied(plan: CopyPlan, seed: int = 1) -> NoisyCopy:
    return NoisyCopy.draw(GRAPH.train, *SIZES, plan, NoiseSource.research(seed))


def as_set(triples: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, triples.tolist()))


def test_without_noise_the_copy_is_the_graph():
    assert as_set(copied(CLEAR).believed()) == as_set(GRAPH.train)


def test_with_noise_most_of_what_is_believed_is_true():
    copy = copied(NOISY)
    believed, true = as_set(copy.believed()), as_set(GRAPH.train)
    assert len(believed & true) > 0.75 * len(believed)
    assert len(believed & true) > 0.5 * len(true)


def test_chances_of_truth_are_calibrated():
    copy = copied(CopyPlan(profile_scale=0.1, epsilon=3.0))
    true = as_set(GRAPH.train)
    held = np.array([tuple(triple) in true for triple in triples_of(copy.cells, copy.entities).tolist()])
    assert truths(copy.rates, copy.epsilon).mean() == pytest.approx(held.mean(), abs=0.05)


def test_what_is_asked_follows_from_the_noisy_counts_alone(monkeypatch):
    """Two graphs whose noisy counts are the same are asked the same: the triples themselves are looked at by
    `respond`, and by nothing else after the counts.
    """
    seen = []

    def respond(asked, held, epsilon, source):
        seen.append(asked)
        return asked[:5]

    monkeypatch.setattr(noisy_copy, "respond", respond)
    profile = Profile(3, (Row(np.array([1]), np.array([2.0]), 0.0), Row(np.array([0, 2]), np.ones(2), 0.0)))
    monkeypatch.setattr(noisy_copy.Profile, "of", classmethod(lambda *_: profile))
    copies = [
        NoisyCopy.draw(np.array(triples, np.int32), 3, 1, NOISY, NoiseSource.research(1))
        for triples in ([[0, 0, 1], [2, 0, 1]], [[1, 0, 2]])
    ]
    assert [asked.tolist() for asked in seen] == [[1, 7], [1, 7]]
    assert copies[0].rates.tolist() == copies[1].rates.tolist()


def test_cells_are_those_of_enough_expected_triples():
    ends = Ends(np.array([3.0, 0.0, 1.0]), np.array([0.0, 1.0, 3.0]))
    wanted = {(h, t) for h in range(3) for t in range(3) if ends.heads[h] * ends.tails[t] / ends.size >= 0.5}
    assert set(zip(*(part.tolist() for part in ends.cells(0.5)), strict=True)) == wanted
    heads, tails = ends.covered(0.5)
    rates = np.outer(ends.heads, ends.tails) / ends.size
    assert heads.tolist() == pytest.approx(np.where(rates >= 0.5, rates, 0).sum(axis=1).tolist())
    assert tails.tolist() == pytest.approx(np.where(rates >= 0.5, rates, 0).sum(axis=0).tolist())


def test_no_more_cells_are_asked_than_allowed():
    profile = Profile(50, tuple(Row(np.arange(50), np.full(50, 2.0), 0.0) for _ in range(4)))
    assert len(asked_cells(profile, least_rate(profile, 1e-6, most=10_000))) == 5000
    assert len(asked_cells(profile, least_rate(profile, 1e-6, most=4_000))) <= 4000
    assert len(list(ends_of(profile))) == 2


def test_the_least_rate_is_found_in_a_few_looks(monkeypatch: pytest.MonkeyPatch):
    """Also at an epsilon of hundreds, where it is far below every rate, or nothing at all."""
    profile = Profile(50, tuple(Row(np.arange(50), np.linspace(0.01, 3, 50), 0.0) for _ in range(4)))
    looks = []
    reach = Ends.reach
    monkeypatch.setattr(Ends, "reach", lambda ends, least: looks.append(least) or reach(ends, least))
    assert [least_rate(profile, wanted, most=6_000) for wanted in (1e-300, 0.0)] == [1e-300, sys.float_info.min]
    least = least_rate(profile, 0.0, most=4_000)
    assert len(asked_cells(profile, least)) <= 4_000 < len(asked_cells(profile, least / 1.25))
    assert len(set(looks)) < 60


def test_answers_mend_the_counts():
    """Expected counts lie nearer to the true ones than the noisy profile did."""
    plan = CopyPlan(profile_scale=2.0, epsilon=8.0)
    true = np.bincount(GRAPH.train[GRAPH.train[:, 1] == 0][:, 2], minlength=SIZES[0])
    copy = copied(plan)
    before, after = Profile.of(copy.questions.counts, SIZES[0]), copy.expected
    errors = [np.abs(profile.rows[0].full(SIZES[0]) - true).mean() for profile in (before, after)]
    assert errors[1] < 0.9 * errors[0]


def test_answers_that_judge_are_in_no_count():
    """With them or without, expected counts are the same: those who judge have told nobody."""
    copy = copied(NOISY)
    before = Profile.of(copy.questions.counts, SIZES[0])
    kept = ~held_out(copy.cells)
    assert 0 < kept.sum() < len(kept)
    least = copy.questions.least
    whole = noisy_copy._corrected(before, copy.cells, copy.rates, copy.epsilon, least)
    part = noisy_copy._corrected(before, copy.cells[kept], copy.rates[kept], copy.epsilon, least)
    for row, other in zip(whole.rows, part.rows, strict=True):
        np.testing.assert_array_equal(row.full(SIZES[0]), other.full(SIZES[0]))


def test_answers_that_are_mostly_chance_leave_the_counts_alone():
    """A no is a lie as often as a yes then, and hides as many triples: expected counts neither shrink nor grow."""
    before = Profile.of(copied(plan := CopyPlan(profile_scale=0.5, epsilon=0.01)).questions.counts, SIZES[0])
    after = copied(plan).expected
    for row, other in zip(before.rows, after.rows, strict=True):
        assert other.full(SIZES[0]).sum() == pytest.approx(row.full(SIZES[0]).sum(), rel=0.02)


def test_a_model_changes_what_is_believed():
    copy, scorer = copied(NOISY), make_scorer("distmult", shape := ModelShape(8, 10.0, 1))
    tables = initial_tables(scorer, shape, *SIZES, np.random.default_rng(0))
    tables.entities[...], tables.relations[...] = 0.1, 0.0
    tables.relations[0] = 3.0
    tables.entities[:100] *= 5
    without, judged = copy.believed(), copy.believed(Embedding(scorer, tables, 10.0), np.random.default_rng(1))
    first = [as_set(some[some[:, 1] == 0]) for some in (without, judged)]
    inner = [sum(1 for head, _, tail in some if head < 100 and tail < 100) / len(some) for some in first]
    assert inner[1] > inner[0]
    assert as_set(without[without[:, 1] == 1]) == as_set(judged[judged[:, 1] == 1]), "where the model says nothing"


def test_a_copy_survives_a_file_and_a_model_holds_no_answers():
    copy = copied(NOISY)
    again = DEFENCES["recommended"].read_release(copy.arrays())
    assert isinstance(again, NoisyCopy)
    assert as_set(again.believed()) == as_set(copy.believed())
    assert again.questions is not None
    assert copy.questions is not None
    assert again.questions.among(copy.cells).all()
    every = np.arange(SIZES[1] * SIZES[0] ** 2)
    assert again.questions.among(every).tolist() == copy.questions.among(every).tolist()
    arrays = copy.model_arrays()
    assert len(arrays["cells"]) == len(arrays["rates"]) == 0
    assert not {"least", "count_keys", "count_values"} & set(arrays)
    with pytest.raises(RunError, match="noisy copy"):
        DEFENCES["recommended"].read_release({"cells": copy.cells})


def test_a_prior_ranks_by_expected_counts_under_any_numbers():
    copy = copied(NOISY)
    prior = DEFENCES["recommended"].read_release(copy.model_arrays()).prior(2.0)
    assert isinstance(prior, CopyPrior)
    scores = np.zeros((1, SIZES[0]), np.float32)
    prior.add_scores(np.array([[0, 1, 0]], np.int32), "head", scores)
    expected = copy.expected.rows[SIZES[1] + 1].full(SIZES[0])
    assert np.array_equal(np.argsort(scores[0], kind="stable"), np.argsort(expected, kind="stable"))
    assert prior.of_triples(np.array([[7, 1, 3]], np.int32), "head")[0] == pytest.approx(scores[0, 7])
    order = np.array([5, 3, 9])
    renumbered = copy.renumbered(order, np.array([1])).prior(2.0)
    few = np.zeros((1, 3), np.float32)
    renumbered.add_scores(np.array([[0, 0, 0]], np.int32), "head", few)
    assert few[0].tolist() == pytest.approx(scores[0, order].tolist())
