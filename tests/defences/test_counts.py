"""Counts within a federation: paid once and beforehand, kept by the client, and part of its model."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import PrivacyError
from fedkge.defences import check_defence, parse
from fedkge.federation.messages import Fit, Goodbye, Upload
from fedkge.mechanisms.events import Geometric
from fedkge.store.durable_files import load_tensors
from tests.defences.test_defence import client_of, rows_of
from tests.short_runs import SHORT, break_off, ledger_records

COUNTED = {"defence": "noisy-steps", "epsilon": 8.0, "noise_seed": 1, "evaluate_every": 0, "count_share": 0.5}


def counted(**options):
    return parse({**SHORT, **COUNTED, **options})


def prices(ledger, client="client-0"):
    """How many counts were paid for, entry by entry."""
    return [sum(isinstance(c.event, Geometric) for c in entry.charges) for entry in ledger.by_round(client)]


def test_counts_are_paid_in_the_first_round_before_they_are_drawn(shards, monkeypatch):
    ledger = Ledger.in_memory()
    client = client_of(shards[0], counted(), ledger)
    paid = []

    def draw(*_):
        paid.extend(prices(ledger))
        raise KeyboardInterrupt  # somebody stopped the site: nobody hears of it

    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_steps.rounds.ReleasedCounts.draw", draw)
        with pytest.raises(KeyboardInterrupt):
            client.handle(Fit(1, rows_of(client)))
    assert (paid, client.released) == ([2], None)
    for number in (1, 2, 3):
        client.handle(Fit(number, rows_of(client)))
    assert prices(ledger) == [2, 0, 0], "the first round had not left, so it was not paid twice"
    assert client.released is not None


def test_counts_whose_round_failed_are_paid_again_or_not_drawn_again(shards, monkeypatch):
    """The server hears that a round failed, so it counts as released; here the budget does not cover a second one."""
    ledger = Ledger.in_memory()
    client = client_of(shards[0], counted(), ledger)

    def draw(*_):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_steps.rounds.ReleasedCounts.draw", draw)
        with pytest.raises(MemoryError):
            client.handle(Fit(1, rows_of(client)))
    assert isinstance(client.handle(Fit(1, rows_of(client))), Goodbye)
    assert (prices(ledger), client.released) == ([2], None)


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_counts_and_training_stay_within_one_budget(shards, accountant):
    run = start(counted(accountant=accountant, epsilon=3.0), shards.graphs)
    assert all(2.9 < spent <= 3.0 for spent in run.epsilon().values())
    assert run.ledger.promises["client-0"].facts.mechanism.counts.types == 8


def test_a_failed_round_leaves_the_counts_of_an_earlier_one(shards, monkeypatch):
    client = client_of(shards[0], counted())
    client.handle(Fit(1, rows_of(client)))
    before = client.released
    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_steps.private_training.PrivateTrainer.train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            client.handle(Fit(2, rows_of(client)))
    assert client.released is before


def test_no_message_carries_counts(shards):
    client = client_of(shards[0], counted())
    reply = client.handle(Fit(1, rows_of(client)))
    assert {field.name for field in fields(Upload)} == {"round", "rows", "triples", "loss", "mark", "releases"}
    assert set(reply.rows) == {"entities"}
    shape = client.embedding.tables.entities.shape
    assert reply.rows["entities"].shape == shape


def test_counts_do_not_change_what_is_uploaded(shards):
    """With the same noise on gradients, an upload with counts has the law of one without: they feed nothing back."""
    client = client_of(shards[0], counted())
    client.handle(Fit(1, rows_of(client)))
    assert client.embedding.prior is None


def test_a_model_is_opened_with_its_counts_and_ranks_the_same(shards, tmp_path):
    trained = start(counted(), shards.graphs, tmp_path / "run")
    opened = open_run(tmp_path / "run", data=shards)
    for client in trained.clients:
        assert opened.prior(client) is not None
    key = "both.realistic.mrr"
    for name, evaluation in opened.evaluate(controls=False, threads=1).items():
        assert evaluation.metrics()[key] == trained.metrics[-1]["clients"][name][key]
    tensors, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    assert any(name.startswith("counts/client-2/") for name in tensors)


def test_an_interrupted_run_goes_on_with_the_counts_that_it_drew(shards, tmp_path, monkeypatch):
    whole = start(counted(rounds=4), shards.graphs, tmp_path / "whole")
    break_off(counted(rounds=4), shards, tmp_path / "halved", rounds=2)
    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_steps.rounds.ReleasedCounts.draw", lambda *_: 1 / 0)
        resume(tmp_path / "halved", data=shards)
    halved, undisturbed = tmp_path / "halved", tmp_path / "whole"
    assert (halved / "model.safetensors").read_bytes() == (undisturbed / "model.safetensors").read_bytes()
    assert ledger_records(halved) == ledger_records(undisturbed)
    assert prices(whole.ledger) == [2, 0, 0, 0]


def test_without_a_share_nothing_is_counted(shards):
    run = start(counted(count_share=0.0), shards.graphs)
    assert not any(name.startswith("counts/") for name in run.tensors)
    assert run.embedding().prior is None
    assert not any(prices(run.ledger))


def test_an_undefended_run_counts_nothing(shards):
    run = start(parse(SHORT), shards.graphs)
    assert not any(name.startswith("counts/") for name in run.tensors)


def test_noisy_steps_count_when_there_is_a_budget_and_no_noise_is_named():
    steps = {"defence": "noisy-steps"}
    assert parse({**steps, "epsilon": 8.0}).privacy.count_share > 0
    assert parse({**steps, "noise": 3.0}).privacy.count_share == 0
    assert parse({**steps, "epsilon": 8.0, "noise": 3.0}).privacy.count_share == 0
    assert parse({**steps, "epsilon": 8.0, "count-share": 0.0}).privacy.count_share == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"noise": 3.0, "epsilon": None}, "share of the budget"),
        ({"selection": "ptr-published", "private_negatives": "public"}, "count-share to 0"),
    ],
)
def test_counts_that_nobody_can_pay_are_refused(options, reason):
    with pytest.raises(PrivacyError, match=reason):
        check_defence(counted(**options))


def test_the_pooled_baseline_pays_for_no_counts(shards):
    run = start(counted(strategy="pooled"), shards.graphs)
    assert not any(prices(run.ledger))
    assert np.isfinite(run.metrics[-1]["both.realistic.mrr"])
