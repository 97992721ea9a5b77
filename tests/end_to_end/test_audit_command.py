"""`fedkge audit` as people use it: train and audit, audit again, limits, claims, refusals and help."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import fedkge as fk
from fedkge.configuration import sections_as_toml
from fedkge.experiments.claim import LedgerClaim
from tests.end_to_end.test_command_line import Outcome, fedkge, write_graph

SMALL = ("--clients", 2, "--overlap", 0.8, "--rounds", 8, "--dimension", 32, "--margin", 4, "--threads", 1)
COPY = "recommended"
"""The defence by copy."""
FAST = (*SMALL, "--negatives", 16, "--learning-rate", 0.02, "--evaluate-every", 0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graph(tmp_path_factory.mktemp("data") / "my-graph", fk.synthetic_graph(300, 6, 1500, seed=1))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "audited"


@pytest.fixture(scope="module")
def told(graph: Path, run: Path) -> Outcome:
    return fedkge("audit", "--data", graph, *FAST, "--canaries", 200, "--out", run)


def test_one_command_trains_and_audits(run: Path, told: Outcome) -> None:
    assert told.code == 0, told.err
    assert re.search(r"^200 canaries, \d+ of them in the training data of client-0", told.out)
    for pattern in (
        r"^upload-difference +server +200 +100 +\d+ +\d\.\d{3} +\d\.\d{3} +\d\.\d{3}$",
        r"^Epsilon is at least \d\.\d{3} at delta 1e-05 \(95 % confidence, corrected for \d+ looks at the coins\)\.$",
        r"^This audit could show at most \d\.\d{3}: about anything above, it says nothing\.$",
        r"^If the mechanism is Gaussian-like, epsilon is at least \d\.\d{3}\.$",
        r"^The run claims nothing",
        r"^Verdict: leakage found\.$",
    ):
        assert re.search(pattern, told.out, re.MULTILINE), pattern
    assert "WARNING" not in told.err
    content = json.loads((run / "audit.json").read_text(encoding="utf-8"))
    assert 1.5 < content["bound"] <= content["ceiling"]
    assert content["coins"] == "independent"
    assert f"All results: {run}/audit.json" in told.err


def test_without_shared_entities_nothing_is_trained(graph: Path, tmp_path: Path) -> None:
    told = fedkge("audit", "--data", graph, *FAST, "--strategy", "isolated", "--out", tmp_path / "run")
    assert told.code != 0
    assert "need shared entities, got strategy 'isolated'" in told.err
    assert not (tmp_path / "run").exists()


def test_a_run_is_audited_again_with_the_same_result(run: Path, told: Outcome) -> None:
    assert told.code == 0
    before = json.loads((run / "audit.json").read_text(encoding="utf-8"))
    again = fedkge("audit", run, "--json")
    assert again.code == 0
    assert again.lines == [{"run": str(run), **before}]


def test_limits(run: Path, told: Outcome) -> None:
    failed = fedkge("audit", run, "--fail-above", 0.2)
    assert failed.code == 9
    assert "Verdict: leakage found." in failed.out
    assert re.search(r"error: epsilon is at least \d\.\d{3}, above the 0\.2 of --fail-above", failed.err)
    never = fedkge("audit", run, "--fail-above", 16)
    assert never.code == 4
    assert "--fail-above 16 could never fail: with 200 canaries this audit can show epsilon" in never.err
    assert never.out == ""


def test_a_contradicted_claim_has_its_own_code(run: Path, told: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fedkge.experiments.recorded_audit.claim_of", lambda *_: LedgerClaim(0.2, 1e-5, "triple", "add or remove one")
    )
    outcome = fedkge("audit", run, "--fail-above", 0.1)
    assert outcome.code == 10
    assert "The run claims epsilon 0.200 at delta 1e-05 per triple." in outcome.out
    assert "Verdict: claim contradicted." in outcome.out
    assert "error: claim contradicted: the run claims epsilon 0.200" in outcome.err


def test_a_claim_out_of_reach_is_called_that(run: Path, told: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fedkge.experiments.recorded_audit.claim_of", lambda *_: LedgerClaim(16.0, 1e-5, "triple", "add or remove one")
    )
    outcome = fedkge("audit", run)
    assert outcome.code == 0
    assert "No result of this audit could have contradicted that: it takes more canaries." in outcome.out


def test_a_second_choice_is_told(run: Path, told: Outcome) -> None:
    outcome = fedkge("audit", run, "--attack", "trajectory", "--guesses", "40,100")
    assert outcome.code == 0
    assert "corrected for 2 looks" in outcome.out
    assert "This run was audited before with other attacks or guesses" in outcome.err


def test_a_research_seed_is_told_aloud(graph: Path, tmp_path: Path) -> None:
    options = ("--rounds", 2, "--canaries", 60, "--seed", 3, "--canary-source", "rare")
    outcome = fedkge("audit", "--data", graph, *FAST, *options, "--out", tmp_path / "run", "--json")
    assert outcome.code == 0, outcome.err
    assert "WARNING: the coins come from --seed. Anyone who knows the seed knows them" in outcome.err
    assert outcome.lines[0]["coins"] == "seeded"
    assert "WARNING" in fedkge("audit", tmp_path / "run").err


def test_options_come_from_a_file_too(graph: Path, tmp_path: Path) -> None:
    values = {"data": str(graph), "clients": 2, "overlap": 0.8, "rounds": 1, "dimension": 8, "negatives": 8}
    text = sections_as_toml({**values, "canaries": 40, "evaluate_every": 0})
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    outcome = fedkge("audit", "--config", tmp_path / "plan.toml", "--canaries", 60, "--out", tmp_path / "run", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.lines[0]["canaries"] == 60


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "expected a run directory to audit, or --out and training options"),
        (("RUN", "--rounds", 3, "--out", "x"), "is trained already, got --rounds, --out"),
        (("--out", "x", "--guesses", "many"), "--guesses: expected even numbers like 100,500, got 'many'"),
        (("--out", "x", "--guesses", "101"), "expected an even number of guesses from 2 to the 1000 canaries, got 101"),
        (("--out", "x", "--confidence", 1.5), "expected a confidence between 0 and 1"),
        (("--out", "x", "--attack", "cia"), "an audit uses passive attacks, got cia"),
        (("--out", "x", "--attack", "trajectorie"), "did you mean trajectory"),
        (("--out", "x", "--canaries", 50, "--fail-above", 4), "--fail-above 4 could never fail"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = fedkge("audit", *arguments)
    assert outcome.code == 4
    assert text in outcome.err
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_help_teaches() -> None:
    outcome = fedkge("audit", "--help")
    assert outcome.code == 0
    words = " ".join(re.sub(r"[│╭╮╰╯─]", " ", outcome.out).split())
    for text in (
        "fedkge audit runs/audited --fail-above 4",
        "exit code is 10",
        "Choose attacks and guesses before you see a result",
        "--canary-source",
    ):
        assert text in words
    assert "audit" in fedkge("--help").out


def test_a_copy_is_audited_with_likely_canaries_and_by_who_sees_it(graph: Path, tmp_path: Path) -> None:
    short = (*FAST, "--rounds", 2, "--canaries", 200, "--seed", 3, "--noise-seed", 3)
    told = fedkge("audit", "--data", graph, *short, "--defence", COPY, "--epsilon", 6, "--out", tmp_path / "run")
    assert told.code == 0, told.err
    assert re.search(r"^copy +auditor +200 +100 +\d+ +\d\.\d{3}", told.out, re.MULTILINE)
    assert re.search(r"^The copy asked about 1\d\d of the 200 canaries\.$", told.out, re.MULTILINE)
    assert 'canary-source = "likely"' in (tmp_path / "run" / "config.toml").read_text(encoding="utf-8")
    again = fedkge("audit", tmp_path / "run", "--attack", "copy", "--json")
    assert [one["attack"] for one in again.lines[0]["findings"]] == ["copy"]


def test_a_run_without_a_copy_has_none_to_look_at(run: Path, told: Outcome) -> None:
    refused = fedkge("audit", run, "--attack", "copy")
    assert refused.code == 4
    assert "attack 'copy' reads a noisy copy, got the defence 'none'" in refused.err
