"""The auditor's score of a noisy copy: what answers and counts say about a coin, and nothing that the coin says."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkge as fk
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration
from fedkge.defences.counts.denoising import log_below, log_likelihood
from fedkge.defences.counts.released import profile_cells
from fedkge.defences.noisy_copy import CopyPlan, NoisyCopy
from fedkge.defences.noisy_copy.likelihood import told_by_sum
from fedkge.defences.noisy_copy.noisy_copy import cells_of
from fedkge.experiments.audited_release import audited_release, auditors_triples, release_scores
from fedkge.experiments.recorded_audit import RunAudit, fitting, reach, run_audit
from fedkge.experiments.white_box import canaries_of, white_box_scores
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.noise import NoiseSource
from fedkge.runs.run import Run

COPY = "recommended"
"""The defence by copy."""
SHARDS = split(synthetic_graph(entities=400, relations=6, triples=2500, seed=1), clients=2, by="entity", overlap=0.8)
OPTIONS: dict[str, Any] = {
    "defence": COPY,
    "epsilon": 6.0,
    "rounds": 2,
    "dimension": 8,
    "negatives": 4,
    "evaluate_every": 0,
    "threads": 1,
    "seed": 3,
    "noise_seed": 3,
    "canaries": 200,
    "canary_coins": "seeded",
    "canary_source": "likely",
    "record": "all",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fk.train(SHARDS, out=tmp_path_factory.mktemp("copy") / "run", **OPTIONS)


@pytest.fixture(scope="module")
def found(run: Run) -> RunAudit:
    return run_audit(run)


def test_a_noisy_sum_says_what_an_enumeration_of_all_coins_says() -> None:
    random = np.random.default_rng(1)
    odds, likelihood = random.normal(size=6), random.normal(size=7)
    weights = np.zeros((6, 2))
    for coins in product((0, 1), repeat=6):
        for place, coin in enumerate(coins):
            others = sum(odds[i] * coins[i] for i in range(6) if i != place)
            weights[place, coin] += np.exp(others + likelihood[sum(coins)])
    expected = np.log(weights[:, 1] / weights[:, 0])
    np.testing.assert_allclose(told_by_sum(odds, likelihood), expected)


def likelihood_of(copy: NoisyCopy, triples: np.ndarray) -> float:
    """The log-probability of a copy of these triples, by the mechanism's own law, but for a constant."""
    assert copy.questions is not None
    counts, cells = copy.questions.counts, profile_cells(triples, copy.entities, copy.relations).ravel()
    true = np.bincount(cells, minlength=counts.size).astype(np.float64)
    seen = dict(zip(counts.keys.tolist(), counts.values.tolist(), strict=True))
    total = 0.0
    for cell, number in enumerate(true):
        one = np.array([number])
        if cell in seen:
            total += float(log_likelihood(np.array([float(seen[cell])]), one, counts.scale)[0, 0])
        else:
            total += float(log_below(counts.threshold, one, counts.scale)[0])
    every = np.arange(copy.relations * copy.entities**2)
    asked, yes = every[copy.questions.among(every)], np.isin(every, copy.cells)
    held = np.isin(every, cells_of(triples, copy.entities))
    return total + copy.epsilon * float(np.count_nonzero((yes == held)[asked]))


@pytest.mark.parametrize("seed", range(4))
def test_the_score_is_the_whole_log_likelihood_ratio(seed: int) -> None:
    """By enumeration of all coins of candidates that share some of their counts, in no circle."""
    known = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 1], [3, 0, 3], [1, 0, 3]], np.int64)
    candidates = np.array([[0, 0, 2], [0, 0, 3], [2, 0, 2], [3, 0, 1]], np.int64)
    held = np.concatenate([known, candidates[::2]]).astype(np.int32)
    copy = NoisyCopy.draw(held, 4, 1, CopyPlan(profile_scale=1.0, epsilon=1.0), NoiseSource.research(seed))
    weights = np.zeros((4, 2))
    for coins in product((False, True), repeat=4):
        chance = np.exp(likelihood_of(copy, np.concatenate([known, candidates[list(coins)]])))
        for place, coin in enumerate(coins):
            weights[place, int(coin)] += chance
    expected = np.log(weights[:, 1] / weights[:, 0])
    scores = release_scores(copy, known.astype(np.int32), candidates.astype(np.int32))
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def asked_of(run: Run) -> np.ndarray:
    asked = audited_release(run).asked(auditors_triples(run, canaries_of(run))[1])
    assert asked is not None
    return asked


def test_most_likely_canaries_are_asked_about_and_random_ones_are_not(run: Run, tmp_path: Path) -> None:
    random = fk.train(SHARDS, out=tmp_path / "run", **{**OPTIONS, "canary_source": "victim"})
    shares = [asked_of(one).mean() for one in (run, random)]
    assert shares[0] > 0.6
    assert shares[1] < shares[0] / 2


def test_coins_are_not_read(run: Run) -> None:
    canaries = canaries_of(run)
    others = replace(canaries, members=~canaries.members)
    np.testing.assert_array_equal(white_box_scores(run, canaries), white_box_scores(run, others))


def test_the_copy_is_one_more_look_of_an_audit(run: Run, found: RunAudit) -> None:
    assert found.adversaries["copy"] == "auditor"
    assert found.result.comparisons == len(fitting(run.configuration))
    assert found.result.ceiling == pytest.approx(reach(run.configuration))
    finding = next(one for one in found.result.findings if one.attack == "copy")
    assert finding == found.result.best
    assert 0 < finding.bound < 6
    assert not found.contradicted
    assert found.asked is not None
    assert 120 < found.asked == found.record()["asked"] <= 200


def test_the_copy_alone_needs_no_record(tmp_path: Path) -> None:
    run = fk.train(SHARDS, out=tmp_path / "run", **{**OPTIONS, "record": "none"})
    found = run_audit(run, ["copy"])
    assert [one.attack for one in found.result.findings] == ["copy"]
    assert found.round == 1


def test_what_has_no_copy_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="reads a noisy copy"):
        reach(Configuration.of(canaries=1000), ["copy"])
    with pytest.raises(RunError, match="expected the checkpoint of client-0"):
        audited_release(replace(run, directory=tmp_path))
    copy = audited_release(run)
    assert isinstance(copy, NoisyCopy)
    with pytest.raises(RunError, match="belongs to a model"):
        release_scores(copy.without_answers(), *auditors_triples(run, canaries_of(run)))
