"""What overwritten runs spent is counted to whoever may hold the same triples, and what is not private is said."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from rich.console import Console
from typer.testing import CliRunner

from fedkge.accounting import Ledger, Promise, make_accountant
from fedkge.accounting.facts import SeededNoise
from fedkge.accounting.statements import Spending, spending_over_runs
from fedkge.cli.app import app
from fedkge.cli.budget import budget_record, budget_table
from fedkge.experiments.claim import claim_of
from fedkge.mechanisms.events import Charge, SampledGaussian
from fedkge.mechanisms.names import name_event
from fedkge.report.promise_words import fault_words
from tests.accounting.complete import FACTS, FILTERED, PLAN, STEPS

RDP = make_accountant("rdp")
STEP = SampledGaussian(0.01, 1)


def cost(*steps, event=STEP):
    return RDP.epsilon([Charge(event, sum(steps))], 1e-5)


def write(path, clients, epsilon=8.0, facts=FACTS):
    """A ledger of one round: for each client its digest and the steps that it paid for."""
    path.parent.mkdir(exist_ok=True)
    ledger = Ledger.open(path)
    for client, (digest, steps) in clients.items():
        charges = steps if isinstance(steps, tuple) else (Charge(STEP, steps),)
        ledger.promise(Promise(client, 1e-5, epsilon, "rdp", largest_round=charges, facts=replace(facts, data=digest)))
        ledger.charge(client, 1, charges)
        ledger.release(client, 1)
    return ledger


def account(*arguments):
    done = CliRunner().invoke(app, ["account", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def record(*arguments):
    return json.loads(account(*arguments, "--json").splitlines()[-1])


def shown(record):
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(budget_table(record))
    return console.export_text()


def test_one_client_then_two_is_counted_to_both(tmp_path):
    """The name client-0 proves nothing: the overwritten run trained on the triples of both."""
    now = write(tmp_path / "ledger.jsonl", {"client-0": ("aa", 10), "client-1": ("bb", 20)})
    write(tmp_path / "ledger-001.jsonl", {"client-0": ("cc", 100)})
    found, old = record(tmp_path), str(tmp_path / "ledger-001.jsonl")
    assert found["together"] == {
        "client-0": cost(10, 100),
        "client-1": cost(20, 100),
        f"client-0 in {old}": cost(20, 100),
    }
    assert found["counted_by_costliest"]["client-1"] == [old]
    assert found["by_owners"] == {"1": cost(20, 100), "3": cost(10, 20, 100)}
    assert found["epsilon_over_rounds"]["client-0"][-1]["epsilon"] == pytest.approx(cost(10, 100))
    text = account(tmp_path)
    assert "An upper bound: nobody in" in text
    assert "all clients of all runs" in text
    assert spending_over_runs([now], 1e-5, RDP)["client-1"].unsure == ()


def test_clients_are_the_same_by_their_digests_and_not_by_their_names(tmp_path):
    write(tmp_path / "ledger.jsonl", {"a": ("aa", 10), "b": ("bb", 20)})
    write(tmp_path / "ledger-001.jsonl", {"a": ("bb", 100), "b": ("aa", 300)})
    found = record(tmp_path)
    assert found["together"] == {"a": cost(10, 300), "b": cost(20, 100)}
    assert found["counted_by_costliest"] == {}
    assert found["by_owners"]["2"] == cost(10, 20, 100, 300)


@pytest.mark.parametrize("digests", [("aa", ""), ("", "aa"), ("", "")])
def test_a_bare_ledger_that_does_not_name_its_data_passes_on_no_trust(tmp_path, digests):
    write(tmp_path / "one.jsonl", {"a": (digests[0], 10), "b": (digests[0] and "bb", 20)})
    write(tmp_path / "two.jsonl", {"a": (digests[1], 100), "b": (digests[1] and "cc", 300)})
    found = record(tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    assert (found["together"]["a"], found["together"]["b"]) == (cost(10, 300), cost(20, 300))
    assert set(found["counted_by_costliest"]) >= {"a", "b"}


def test_a_client_that_only_the_overwritten_run_had_is_listed_too(tmp_path):
    write(tmp_path / "ledger.jsonl", {"a": ("aa", 10)})
    write(tmp_path / "ledger-001.jsonl", {"a": ("aa", 10), "b": ("bb", 500)})
    for named in (tmp_path, tmp_path / "ledger.jsonl"):
        assert record(named)["together"] == {"a": cost(20), "b": cost(510)}


def test_an_overwritten_run_that_ended_at_its_first_line_is_passed_over(tmp_path):
    write(tmp_path / "ledger.jsonl", {"a": ("aa", 10)})
    (tmp_path / "ledger-001.jsonl").write_bytes(b'{"kind": "once", "wh')
    assert record(tmp_path)["together"] == {"a": cost(10)}


def test_the_costliest_is_sought_with_all_that_it_is_composed_with(tmp_path):
    many, noisy = SampledGaussian(0.3, 8), SampledGaussian(0.001, 0.7)
    now = write(tmp_path / "now.jsonl", {"a": ("aa", (Charge(many, 900),))})
    other = write(tmp_path / "other.jsonl", {"a": ("", (Charge(noisy, 9),)), "b": ("", (Charge(many, 100),))})
    found = spending_over_runs([now, other], 1e-5, RDP)["a"]
    both = [Spending((Charge(many, 900), Charge(noisy, 9))), Spending((Charge(many, 1000),))]
    assert found.spending.epsilon(1e-5, RDP) == max(spending.epsilon(1e-5, RDP) for spending in both)


def test_names_with_less_noise_do_not_stand_for_names_that_expose_more(tmp_path):
    """At a smaller delta than was promised the names of one client use up all of it, those of the other do not."""
    delta, less_noise, more_exposed = 4e-6, name_event(2.0, 1e-5), name_event(1.0, 1e-5)
    assert less_noise.exposure < delta < more_exposed.exposure
    now = write(tmp_path / "now.jsonl", {"a": ("aa", 10)})
    other = write(tmp_path / "other.jsonl", {"a": ("", (Charge(less_noise),)), "b": ("", (Charge(more_exposed),))})
    assert spending_over_runs([now, other], delta, RDP)["a"].spending.epsilon(delta, RDP) == float("inf")


def test_too_many_combinations_are_counted_all_at_once(tmp_path):
    events = [SampledGaussian(0.1 + 0.01 * number, 2 + number) for number in range(8)]
    clients = {str(number): ("", (Charge(event, 1),)) for number, event in enumerate(events)}
    ledgers = [write(tmp_path / f"{number}.jsonl", clients) for number in range(3)]
    found = spending_over_runs(ledgers, 1e-5, RDP)["0"]
    assert sum(charge.steps for charge in found.spending.charges) == 1 + 8 + 8
    assert len(found.parts) == 17


def test_the_budget_of_a_run_mentions_what_was_overwritten(tmp_path):
    ledger = write(tmp_path / "ledger.jsonl", {"a": ("aa", 10), "b": ("bb", 10)})
    run = SimpleNamespace(ledger=ledger, metrics=[], directory=tmp_path)
    assert "overwritten" not in budget_record(run)["a"]
    write(tmp_path / "ledger-001.jsonl", {"a": ("aa", 100), "b": ("cc", 200)})
    found = budget_record(run)
    assert found["a"]["spent"] == cost(10)
    known, guessed = cost(110), cost(210)
    assert found["a"]["overwritten"] == {"runs": 1, "together": known, "upper_bound": False, "run": str(tmp_path)}
    assert found["b"]["overwritten"] == {"runs": 1, "together": guessed, "upper_bound": True, "run": str(tmp_path)}
    assert f"Together at most: a {known:.3f}, b {guessed:.3f} (fedkge account {tmp_path})" in shown(found)
    claim = claim_of(tmp_path, "a")
    assert claim.epsilon == cost(10)
    assert f"together epsilon {known:.3f}" in claim.record()["remarks"][0]


def test_an_overwritten_filter_leaves_no_room_at_the_same_delta(tmp_path):
    ledger = write(tmp_path / "ledger.jsonl", {"a": ("aa", 10)})
    write(tmp_path / "ledger-001.jsonl", {"a": ("aa", 10)}, facts=FILTERED)
    found = budget_record(SimpleNamespace(ledger=ledger, metrics=[], directory=tmp_path))
    assert found["a"]["overwritten"]["together"] is None
    assert "a no guarantee" in shown(found)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(FACTS, noise_source=SeededNoise(seed=7)), "research seed"),
        (replace(FACTS, mechanism=replace(STEPS, selection="ptr-published")), "as printed"),
        (replace(FACTS, names=None), "does not say: names"),
    ],
)
def test_what_is_not_private_is_said_everywhere(tmp_path, facts, reason):
    ledger = write(tmp_path / "ledger.jsonl", {"a": ("aa", 10)}, facts=facts)
    found = record(tmp_path)
    assert (found["private"], found["sound"]) == (False, False)
    assert reason in found["not_private_because"][0]
    assert found["runs"][0]["clients"]["a"]["private"] is False
    assert f"NOT PRIVATE: {found['not_private_because'][0]}" in account(tmp_path)
    budget = budget_record(SimpleNamespace(ledger=ledger, metrics=[], directory=tmp_path))
    assert budget["a"]["private"] is False
    assert "NOT PRIVATE" in shown(budget)
    claim = claim_of(tmp_path, "a")
    assert claim.private is False
    assert reason in fault_words(claim.faults[0])


def test_what_is_private_is_not_called_otherwise(tmp_path):
    ledger = write(tmp_path / "ledger.jsonl", {"a": ("aa", 10)})
    assert record(tmp_path)["private"] is True
    budget = budget_record(SimpleNamespace(ledger=ledger, metrics=[], directory=None))
    assert (budget["a"]["private"], budget["a"]["not_private_because"]) == (True, "")
    assert "NOT PRIVATE" not in shown(budget) + account(tmp_path)
    assert "planned" not in shown(budget)


@pytest.mark.parametrize(("epsilon", "told"), [(8.0, "only the budget does"), (None, "nothing fixed does")])
def test_other_rounds_than_planned_are_mentioned(tmp_path, epsilon, told):
    facts = replace(FACTS, plan=replace(PLAN, rounds=3))
    ledger = write(tmp_path / "ledger.jsonl", {"a": ("aa", 10)}, epsilon=epsilon, facts=facts)
    budget = budget_record(SimpleNamespace(ledger=ledger, metrics=[], directory=None))
    assert budget["a"]["rounds_planned"] == 3
    assert f"Otherwise {told}" in shown(budget)
