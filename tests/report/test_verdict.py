"""The verdict: its rule, its order, and how often it cries wolf."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedkge.audit.metrics import auc
from fedkge.report import gather
from fedkge.report.document import AttackRow, DesignFacts
from fedkge.report.promised import roc_limit
from fedkge.report.verdict import corrected_low, decide, judged


def test_the_corrected_end_is_that_of_the_corrected_level() -> None:
    random = np.random.default_rng(1)
    members = np.arange(400) < 200
    for scores in (random.normal(size=400) + members, members.astype(float)):
        low = corrected_low(auc(scores, members), 0.95, 10)
        assert low == pytest.approx(auc(scores, members, 0.995).low, abs=1e-12)


def test_ten_blind_attacks_cry_wolf_in_at_most_five_percent_of_runs() -> None:
    """400 runs of ten attacks that know nothing; 5 % are expected at most, 9 % has a chance below 0.1 % at 5 %."""
    random = np.random.default_rng(7)
    members = np.arange(120) < 60
    alarms = 0
    for _ in range(400):
        scores = random.normal(size=(10, 120))
        alarms += any(corrected_low(auc(one, members), 0.95, 10) > 0.5 for one in scores)
    assert alarms <= 36


def row_of(scores: np.ndarray, members: np.ndarray, base: AttackRow) -> AttackRow:
    return replace(base, design="R", auc=auc(scores, members), corrected_low=None, leaks=None)


def test_attacks_are_judged_on_both_sides(run: Path) -> None:
    """Ten blind attacks cry wolf in 5 % of 300 runs at most (9 %: chance below 0.3 %); a turned one is found."""
    base, random, members = gather(run, "for-owner").attacks.rows[0], np.random.default_rng(8), np.arange(120) < 60
    facts = DesignFacts("R", "", "", True, "", 60, 60, 0.05, 0.667)
    alarms = 0
    for _ in range(300):
        rows = [row_of(scores, members, base) for scores in random.normal(size=(10, 120))]
        alarms += any(row.leaks for row in judged(rows, [facts], 0.95))
    assert alarms <= 27
    turned = row_of(random.normal(size=120) - 2.0 * members, members, base)
    found = judged([turned], [facts], 0.95)
    assert found[0].leaks
    verdict = decide(
        found,
        gather(run, "for-owner").claim,
        replace(gather(run, "for-owner").audit, findings=(), largest=None, ceiling=None),
    )
    assert verdict.kind == "leakage found"
    assert f"{100 * (1 - turned.auc.value):.0f}" in verdict.sentence


def test_a_contradicted_claim_comes_first(overclaimed: Path) -> None:
    document = gather(overclaimed, "for-owner")
    assert document.claim.epsilon is not None
    assert document.audit.largest is not None
    assert document.audit.largest.epsilon > document.claim.epsilon
    assert document.verdict.kind == "claim contradicted"
    assert "at least" in document.verdict.sentence
    assert any("do not release" in remark for remark in document.verdict.remarks)


def test_leakage_none_and_nothing(run: Path) -> None:
    document = gather(run, "for-owner")
    rows, claim, audit = document.attacks.rows, document.claim, document.audit
    assert document.verdict.kind == "leakage found"
    blind = [replace(row, leaks=False if row.leaks is not None else None) for row in rows]
    unaudited = replace(audit, findings=(), largest=None, ceiling=None)
    assert decide(blind, claim, unaudited).kind == "no leakage found by these attacks"
    assert decide(blind, claim, audit).kind == "leakage found"
    assert decide([], claim, unaudited).kind == "not tested"
    plausible = [row for row in rows if row.design != "C"]
    assert decide(plausible, claim, unaudited).kind == "not tested"


def test_no_sentence_says_safe(run: Path, bare: Path, overclaimed: Path) -> None:
    for folder in (run, bare, overclaimed):
        assert "safe" not in gather(folder, "for-owner").to_json().lower().replace("safetensors", "")


def test_the_limit_of_the_roc_is_met_by_randomised_response() -> None:
    epsilon = 1.5
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    assert roc_limit(1 - truth, epsilon, 0.0) == pytest.approx(truth)
    assert roc_limit(0.0, epsilon, 1e-3) == pytest.approx(1e-3)
    assert roc_limit(0.5, 800.0, 0.0) == pytest.approx(1.0)
