"""The audit of a run: what leaks is found, what was scrambled is not, and claims are held against it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkge as fk
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration
from fedkge.experiments.claim import LedgerClaim, claim_of
from fedkge.experiments.recorded_audit import RESULTS, RunAudit, fitting, reach, run_audit
from fedkge.experiments.targets.canaries import CANARIES
from fedkge.experiments.targets.files import read_targets, write_targets
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.runs.directory import LEDGER
from fedkge.runs.run import Run

SHARDS = split(synthetic_graph(entities=300, relations=6, triples=1500, seed=1), clients=2, by="entity", overlap=0.6)
OPTIONS: dict[str, Any] = {
    "rounds": 8,
    "dimension": 32,
    "margin": 4.0,
    "negatives": 16,
    "learning_rate": 0.02,
    "evaluate_every": 0,
    "threads": 1,
    "canaries": 200,
    "canary_coins": "independent",
    "canary_source": "victim",
    "record": "all",
}


def train(folder: Path, **options: Any) -> Run:
    return fk.train(SHARDS, out=folder, **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("audit") / "run")


@pytest.fixture(scope="module")
def found(run: Run) -> RunAudit:
    return run_audit(run)


def test_an_undefended_run_leaks_and_the_ceiling_holds(run: Run, found: RunAudit) -> None:
    result = found.result
    assert 1.5 < result.bound <= result.ceiling
    assert result.canaries == 200
    assert result.inserted == len(run.shards[0].train) - len(SHARDS[0].train)
    assert (found.claim, found.contradicted, found.verdict) == (None, False, "leakage found")
    assert (found.victim, found.round, found.coins) == ("client-0", 8, "independent")
    assert result.ceiling == pytest.approx(reach(run.configuration))


def test_every_adversary_looks(found: RunAudit) -> None:
    assert set(found.adversaries.values()) == {"server", "client", "collusion"}
    assert {finding.attack for finding in found.result.findings} == set(found.adversaries)
    scored = {found.adversaries[finding.attack]: finding.scored for finding in found.result.findings}
    assert scored["server"] == 200
    assert 0 < scored["client"] < 200  # it does not know all of the victim's entities


def test_the_file_is_the_record(run: Run, found: RunAudit) -> None:
    assert run.directory is not None
    content = json.loads((run.directory / RESULTS).read_text(encoding="utf-8"))
    assert content == found.record()
    assert content["claim"] is None
    assert content["plans"] == [{"attacks": list(fitting(run.configuration)), "guesses": [100], "confidence": 0.95}]


def test_coins_tossed_again_are_not_guessed(run: Run, tmp_path: Path) -> None:
    """Coins that have nothing to do with the training: a false alarm in 1 of 10,000 runs of this test at most."""
    assert run.directory is not None
    canaries = read_targets(run.directory / CANARIES, run.entities, run.relations)
    elsewhere = tmp_path / "run"
    elsewhere.mkdir()
    for entry in run.directory.iterdir():
        if entry.name not in (CANARIES, RESULTS):
            (elsewhere / entry.name).symlink_to(entry)
    tossed = np.random.default_rng(4).integers(0, 2, len(canaries)).astype(np.bool_)
    write_targets(elsewhere / CANARIES, replace(canaries, members=tossed), run.entities, run.relations)
    scrambled = run_audit(replace(run, directory=elsewhere), confidence=0.9999)
    assert (scrambled.result.bound, scrambled.verdict) == (0.0, "no leakage found by these attacks")


def test_a_second_look_is_written_down(tmp_path: Path) -> None:
    run = train(tmp_path / "run", rounds=2, canaries=60)
    first = run_audit(run)
    assert len(run_audit(run).plans) == len(first.plans) == 1
    second = run_audit(run, attacks=["trajectory"], guesses=[40])
    assert second.plans == (first.plans[0], {"attacks": ["trajectory"], "guesses": [40], "confidence": 0.95})
    assert second.result.comparisons == 1


def test_models_have_their_own_attacks(tmp_path: Path) -> None:
    found = run_audit(train(tmp_path / "run", model="distmult", rounds=2, canaries=60))
    assert not any(name.startswith("si-") for name in found.adversaries)
    assert "upload-difference" in found.adversaries
    assert not any(name.endswith("-published") for name in fitting(Configuration()))


def test_rare_canaries_are_audited_too(tmp_path: Path) -> None:
    found = run_audit(train(tmp_path / "run", canary_source="rare", canaries=60, rounds=3))
    assert found.result.canaries == 60


def test_claims_are_held_against_the_bound(found: RunAudit) -> None:
    low, high = (
        replace(found, claim=LedgerClaim(epsilon, 1e-5, "triple", "add or remove one")) for epsilon in (0.5, 50.0)
    )
    assert (low.verdict, low.contradicted) == ("claim contradicted", True)
    assert (high.verdict, high.contradicted) == ("leakage found", False)
    assert low.record()["claim"]["epsilon"] == 0.5


def test_a_ledger_is_a_claim(tmp_path: Path) -> None:
    ledgers = pytest.importorskip("fedkge.accounting.ledger")
    from fedkge.accounting.promises import Promise  # noqa: PLC0415
    from fedkge.mechanisms.events import Charge, Gaussian  # noqa: PLC0415

    charges = (Charge(Gaussian(multiplier=4.0), steps=1),)
    ledger = ledgers.Ledger.open(tmp_path / LEDGER)
    ledger.promise(Promise("client-0", delta=1e-6, epsilon=8.0, largest_round=charges))
    ledger.charge("client-0", 1, charges)
    claim = claim_of(tmp_path, "client-0")
    assert claim is not None
    assert (claim.epsilon, claim.delta) == (pytest.approx(ledger.spent("client-0")), 1e-6)
    assert claim_of(tmp_path, "client-1") is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"canaries": 0}, "an audit needs canaries with independent coins, got a run without canaries"),
        ({"canary_coins": "half"}, "got a run in which exactly half of them are members: train with `fedkge audit"),
        ({"strategy": "isolated"}, "strategy fede"),
    ],
)
def test_runs_that_cannot_be_audited(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    run = train(tmp_path / "run", **{"rounds": 1, "canaries": 20, **options})
    with pytest.raises(ConfigurationError, match=text):
        run_audit(run)


def test_a_run_without_a_directory_or_a_transcript(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="an audit needs a run directory: train with --out"):
        run_audit(fk.train(SHARDS, **{**OPTIONS, "rounds": 1, "record": "none"}))
    with pytest.raises(RunError, match="nothing was recorded"):
        run_audit(train(tmp_path / "run", rounds=1, record="none"))
