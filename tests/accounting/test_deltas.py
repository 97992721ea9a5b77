"""Delta follows the public size, a large one needs insisting, and a large epsilon gets one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedkge.accounting.deltas import chosen_delta, large_epsilon, usual_delta
from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.cli.app import app
from fedkge.defences import check_defence, parse
from fedkge.defences.planning import client_defence
from fedkge.graph import Graph
from fedkge.report.promised import gather_claim

BUDGET = {"defence": "recommended", "epsilon": 8.0}
PLAN = ("account", "--batch", "4096", "--triples", "90000", "--sigma", "1", "--steps", "10", "--accountant", "rdp")


def promise_of(**options):
    graph = Graph.from_names("g", train=[(f"e{i % 30}", "r", f"e{i % 29}") for i in range(200)])
    ledger = Ledger.in_memory()
    client_defence(parse({**BUDGET, **options}), "client-0", graph, ledger)
    return ledger


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize(("triples", "delta"), [(1, 1e-5), (10_000, 1e-5), (100_000, 1e-6), (10**7, 1e-8)])
def test_the_usual_delta_is_a_tenth_of_one_over_the_size(triples, delta):
    assert usual_delta(triples) == pytest.approx(delta)
    promised = promise_of(public_triples=triples).promises["client-0"]
    assert promised.delta == pytest.approx(delta)
    assert promised.epsilon == 8.0


def test_noise_is_calibrated_to_the_delta_that_is_promised():
    """By noisy steps, where a smaller delta needs more noise."""
    steps = {"defence": "dpsgd", "local_steps": 5, "batch_size": 64, "rounds": 3, "accountant": "rdp"}
    noises = []
    for public in (10_000, 1_000_000):
        ledger = promise_of(**steps, public_triples=public, delta=None)
        made = ledger.promises["client-0"]
        noises.append(made.plan.noise)
        fixed = promise_of(**steps, public_triples=public, delta=made.delta).promises["client-0"]
        assert fixed.plan.noise == made.plan.noise
        looser = promise_of(**steps, public_triples=public, delta=9 * made.delta).promises["client-0"]
        assert looser.plan.noise < made.plan.noise


@pytest.mark.parametrize("delta", [0.5, 1e-5 * 1.01, 1e-5])
def test_a_delta_of_one_over_n_is_refused_unless_the_user_insists(delta):
    with pytest.raises(PrivacyError, match=r"expected less than 1/100000, .*, got .*or use --allow-large-delta"):
        promise_of(public_triples=100_000, delta=delta)
    made = promise_of(public_triples=100_000, delta=delta, allow_large_delta=True)
    assert made.promises["client-0"].delta == delta
    promise_of(public_triples=100_000, delta=0.99e-5)


def test_a_delta_that_no_client_could_have_is_refused_before_anything_is_read():
    with pytest.raises(PrivacyError, match="expected less than 1/100, "):
        check_defence(parse({**BUDGET, "delta": 0.5}))
    check_defence(parse({**BUDGET, "delta": 0.5, "allow_large_delta": True}))
    with pytest.raises(ConfigurationError, match="above 0 and below 1"):
        chosen_delta(1.5, 10, allow_large=True)


def test_a_delta_is_judged_by_the_noisy_size():
    with pytest.raises(PrivacyError, match=r"got 0\.009"):
        promise_of(delta=0.009, noise_seed=1)


def test_train_refuses_a_delta_of_a_half(tmp_path):
    train = ("train", "--data", "demo", "--epsilon", 8, "--rounds", 1, "--out", tmp_path / "run")
    assert "got 0.5" in run(*train, "--delta", 0.5, code=8).output
    assert not (tmp_path / "run").exists()


def test_account_has_the_same_delta_and_the_same_refusal():
    record = json.loads(run(*PLAN, "--json").stdout)
    assert record["delta"] == pytest.approx(1 / 900_000)
    assert "expected less than 1/90000" in run(*PLAN, "--delta", 0.5, code=8).output
    assert json.loads(run(*PLAN, "--delta", 0.5, "--allow-large-delta", "--json").stdout)["delta"] == 0.5


def test_account_of_a_ledger_refuses_a_large_delta_too(tmp_path):
    path = tmp_path / "ledger.jsonl"
    graph = Graph.from_names("g", train=[(f"e{i % 30}", "r", f"e{i % 29}") for i in range(200)])
    client_defence(parse({**BUDGET, "public_triples": 50_000}), "client-0", graph, Ledger.open(path))
    assert "expected less than 1/50000" in run("account", path, "--delta", 0.1, code=8).output
    assert run("account", path, "--delta", 0.1, "--allow-large-delta")


def test_an_epsilon_above_ten_is_warned_of_once_everywhere():
    assert large_epsilon(10.0) == ""
    sentence = large_epsilon(16.0)
    assert sentence.count(". ") == 0
    claims = [
        gather_claim(Path(), promise_of(epsilon=epsilon), parse({**BUDGET, "epsilon": epsilon}))
        for epsilon in (8.0, 16.0)
    ]
    assert [sum(sentence == warning for warning in claim.warnings) for claim in claims] == [0, 1]
    expensive = ("account", "--batch", 4096, "--triples", 9000, "--sigma", 0.5, "--steps", 500, "--accountant", "rdp")
    assert "is above 10: the guarantee alone" in " ".join(run(*expensive).output.split())
    assert "is above 10" not in run(*PLAN).output


def test_train_warns_of_a_large_epsilon():
    output = run("train", "--data", "demo", "--epsilon", 16, "--rounds", 1, "--dimension", 8).output
    assert " ".join(output.split()).count("Epsilon 16 is above 10") == 1
