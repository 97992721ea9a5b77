"""Figures that may be passed on: drawn once, charged before they are told, and functions of one triple each."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fedkge.accounting.extras import Extra
from fedkge.accounting.figures import kept_metrics
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.statements import spending_of
from fedkge.api import paid_metrics
from fedkge.api.paid_metrics import reciprocal_ranks, release_metrics
from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.cli.app import app
from fedkge.defences import parse
from fedkge.evaluation.ranking import rank
from fedkge.graph.shards_on_disk import save_shards
from fedkge.mechanisms.events import Charge, Responses
from fedkge.report import gather
from fedkge.runs.run import Run
from fedkge.store.state_folder import VARIABLE
from tests.neighbours import Releases, graphs, neighbour

SHARDS = graphs()
OPTIONS: dict[str, Any] = {
    "data": "hospitals",
    "clients": 2,
    "rounds": 2,
    "dimension": 8,
    "negatives": 4,
    "seed": 5,
    "threads": 1,
    "evaluate_every": 0,
    "epsilon": 8.0,
    "defence": "recommended",
}


def trained(folder: Path, **more: Any) -> Path:
    start(parse({**OPTIONS, **more}), SHARDS.graphs, folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paid") / "run"
    save_shards(SHARDS, folder.parent / "graphs")
    return trained(folder, data=str(folder.parent / "graphs"))


@pytest.fixture
def paid(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run on another machine, where no witness has seen other copies go on."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "state"))
    return Path(shutil.copytree(run, tmp_path / "run"))


def call(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_figure_is_near_the_truth_and_is_drawn_once(paid: Path) -> None:
    first = release_metrics(paid, 2.0)
    run = open_run(paid)
    for number, one in enumerate(first):
        exact = reciprocal_ranks(run.embedding(run.clients[number]), run.shards[number])
        assert one.mean.value == pytest.approx(exact.mean(), abs=6 * one.mean.deviation)
        assert abs(one.mean.number - len(exact)) < 30
        assert (one.split, one.round) == ("test", 2)
    content = (paid / "ledger.jsonl").read_bytes()
    assert release_metrics(paid, 2.0) == first
    assert (paid / "ledger.jsonl").read_bytes() == content
    with pytest.raises(PrivacyError, match=r"paid for with epsilon 2, got 1; a second"):
        release_metrics(paid, 1.0)
    assert (paid / "ledger.jsonl").read_bytes() == content


def test_it_is_charged_before_it_is_drawn_and_kept_before_it_is_told(paid: Path, monkeypatch: Any) -> None:
    """A power cut between the two: nobody saw anything, and the next call draws for what was paid, once."""
    genuine, lines = paid_metrics.NoisyMean.release, []

    def cut(*values: Any) -> Any:
        lines.append((paid / "ledger.jsonl").read_text().splitlines()[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(paid_metrics.NoisyMean, "release", cut)
    with pytest.raises(KeyboardInterrupt):
        release_metrics(paid, 2.0)
    assert json.loads(lines[0])["kind"] == "extra"
    before = Ledger.read(paid / "ledger.jsonl").spent("client-0")
    assert before > 9
    assert kept_metrics(Ledger.read(paid / "ledger.jsonl")) == ()
    monkeypatch.setattr(paid_metrics.NoisyMean, "release", genuine)
    assert len(release_metrics(paid, 2.0)) == 2
    assert Ledger.read(paid / "ledger.jsonl").spent("client-0") == before
    kinds = [json.loads(line)["kind"] for line in (paid / "ledger.jsonl").read_text().splitlines()]
    assert (kinds.count("extra"), kinds.count("extra-value")) == (2, 2)


def test_the_budget_and_what_is_spent_grow_by_it_everywhere(paid: Path) -> None:
    before = Ledger.read(paid / "ledger.jsonl")
    release_metrics(paid, 1.5)
    ledger = Ledger.read(paid / "ledger.jsonl")
    for client in ledger.clients:
        assert ledger.promised(client) == 9.5
        assert before.spent(client) + 1.0 < ledger.spent(client) <= 9.5 * (1 + 1e-9)
        assert spending_of(ledger, client).charges == ledger.charges(client)
        assert ledger.charges_of_rounds(client) == before.charges(client)
    document = gather(paid)
    assert [(one.epsilon, one.within) for one in document.claim.clients] == [(9.5, True)] * 2
    assert document.claim.epsilon == ledger.spent("client-0")
    code, out, _ = call("account", paid, "--json")
    assert code == 0
    told = json.loads(out)["runs"][0]["clients"]["client-0"]
    assert (told["budget"], told["spent"]) == (9.5, ledger.spent("client-0"))


def test_the_shareable_report_shows_it_and_says_without_it_that_none_was_paid_for(paid: Path) -> None:
    assert "No figure was paid for" in gather(paid).utility.missing
    code, _, err = call("report", paid, "--metrics-epsilon", 2)
    assert code == 0, err
    assert "paid with epsilon 2 on top of its budget" in " ".join(err.split())
    for copy in ("shareable", "for-owner"):
        utility = gather(paid, copy).utility  # type: ignore[arg-type]
        assert [(one.client, one.epsilon) for one in utility.paid] == [("client-0", 2.0), ("client-1", 2.0)]
        assert bool(utility.rows) is (copy == "for-owner")
    page = (paid / "report.html").read_text(encoding="utf-8")
    assert f"{gather(paid).utility.paid[0].mrr:.3f}" in page
    assert "No figure was paid for" not in page


@pytest.mark.parametrize("filtered", [False, True])
def test_a_held_out_triple_changes_its_own_share_alone(paid: Path, filtered: bool, monkeypatch: Any) -> None:
    """Planted: ranks that are filtered by private triples, where one triple changes the shares of others."""
    run = open_run(paid)
    if filtered:
        known = [shard.all_triples for shard in run.shards]
        monkeypatch.setattr(paid_metrics, "rank", lambda model, triples, _: rank(model, triples, known[0]))
    model, whole = run.embedding("client-0"), reciprocal_ranks(run.embedding("client-0"), run.shards[0])
    triples = np.unique(run.shards[0].test, axis=0)
    changed = 0
    for place in range(len(triples)):
        less = np.delete(triples, place, axis=0)
        if filtered:
            train = run.shards[0]
            known[0] = np.concatenate((train.train, train.valid, less))
        shares = reciprocal_ranks(model, replace(run.shards[0], test=less))
        changed += not np.array_equal(shares, np.delete(whole, place))
    assert (changed > 0) is filtered


def test_triples_of_training_and_repetitions_change_nothing(paid: Path) -> None:
    run = open_run(paid)
    shard, model = run.shards[0], run.embedding("client-0")
    whole = reciprocal_ranks(model, shard)
    assert np.array_equal(reciprocal_ranks(model, replace(shard, train=shard.train[1:], valid=shard.valid[1:])), whole)
    twice = replace(shard, test=np.concatenate((shard.test, shard.test[:5])))
    assert np.array_equal(reciprocal_ranks(model, twice), whole)
    assert len(reciprocal_ranks(model, replace(shard, test=shard.test[:0]))) == 0


@pytest.mark.parametrize("part", ["train", "test"])
def test_neighbours_with_the_same_releases_show_the_same_figures(part: str, tmp_path: Path) -> None:
    releases = Releases()
    shown = []
    for folder, shards, mode in (
        (tmp_path / "with", SHARDS, releases.recorded()),
        (tmp_path / "without", neighbour(SHARDS, part), releases.forced()),
    ):
        with mode:
            run: Run = start(parse(OPTIONS), shards.graphs, folder / "run")
            release_metrics(folder / "run", 1.0, data=shards)
        from fedkge.report.shareable import OUTPUTS  # noqa: PLC0415 (heavy)

        shown.append({output.name: output.make(run) for output in OUTPUTS})
    assert shown[0] == shown[1]


def test_a_run_can_go_on_with_its_own_budget(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", defence="noisy-steps", batch_size=256)
    release_metrics(folder, 4.0, data=SHARDS)
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(text.replace("rounds = 2", "rounds = 3", 1))
    resume(folder, data=SHARDS)
    ledger = Ledger.read(folder / "ledger.jsonl")
    assert ledger.promised("client-0") == 12
    assert ledger.spent("client-0") <= 12 * (1 + 1e-9)
    assert kept_metrics(ledger)[0].round == 2


def test_refusals(tmp_path: Path, paid: Path) -> None:
    with pytest.raises(PrivacyError, match="has no defence, so no budget can pay"):
        release_metrics(trained(tmp_path / "open", defence="none", epsilon=None), 1.0, data=SHARDS)
    pooled = trained(tmp_path / "pooled", defence="noisy-steps", strategy="pooled", rounds=1)
    with pytest.raises(PrivacyError, match="nobody has a budget of its own"):
        release_metrics(pooled, 1.0, data=SHARDS)
    for epsilon in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigurationError, match="expected a number above 0"):
            release_metrics(paid, epsilon)
    ledger = Ledger.in_memory()
    with pytest.raises(PrivacyError, match="has no promise"):
        ledger.charge_extra("client-0", Extra("test", 1.0, (Charge(Responses(1.0)),)))


def test_a_ledger_keeps_one_value_for_one_charge(tmp_path: Path, paid: Path) -> None:
    ledger = Ledger.open(paid / "ledger.jsonl")
    extra = Extra("test", 1.0, (Charge(Responses(1.0)),))
    with pytest.raises(PrivacyError, match="was never charged, or has a value already"):
        ledger.keep_extra("client-0", "test", {"total": 1})
    ledger.charge_extra("client-0", extra)
    ledger.charge_extra("client-0", extra)
    with pytest.raises(PrivacyError, match="already, released or at another price"):
        ledger.charge_extra("client-0", replace(extra, epsilon=2.0))
    ledger.keep_extra("client-0", "test", {"total": 1, "number": 2, "round": 3})
    with pytest.raises(PrivacyError, match="already, released or at another price"):
        ledger.charge_extra("client-0", extra)
    again = Ledger.read(paid / "ledger.jsonl")
    assert (
        again.extras("client-0")
        == ledger.extras("client-0")
        == (replace(extra, value={"total": 1, "number": 2, "round": 3}),)
    )
    assert again.extras("client-1") == ()
