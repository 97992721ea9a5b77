"""`fedkge account`: plans, budgets, ledgers, and what it says when asked for the impossible."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs
from typer.testing import CliRunner

from fedkge.accounting import Ledger, Promise, make_accountant
from fedkge.accounting.curves import epsilon_over_rounds, milestones
from fedkge.accounting.plan_costs import picture_parts
from fedkge.accounting.plans import CostPlan
from fedkge.accounting.posterior import guess_worth
from fedkge.accounting.statements import Spending, epsilon_by_owners
from fedkge.base.errors import ConfigurationError
from fedkge.cli.app import app
from fedkge.mechanisms.events import (
    Charge,
    Geometric,
    PublishedTest,
    Responses,
    SampledGaussian,
    SampledPair,
    SampledTest,
)
from tests.accounting.complete import FACTS, FILTERED
from tests.machines import another_machine

RUNNER = CliRunner()
SIZES = ["--batch", "64", "--triples", "90000"]
STEP = SampledGaussian(0.01, 1)


def account(*arguments, code=0):
    done = RUNNER.invoke(app, ["account", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def record(*arguments):
    return json.loads(account(*arguments, "--json").stdout)


def test_what_a_plan_costs(reference):
    row = next(row for row in reference["poisson_gaussian"] if row["sigma"] == 1 and row["T"] >= 1000)
    batch = round(row["q"] * 90000)
    found = record("--batch", batch, "--triples", 90000, "--sigma", 1, "--steps", row["T"], "--delta", 1e-5)
    assert found["epsilon"] == pytest.approx(row["eps_dp_accounting_pld"], rel=0.01)
    assert found["epsilon_by_accountant"]["rdp"] == pytest.approx(row["eps_dp_accounting_rdp"], rel=1e-6)
    assert found["sound"] is True
    assert found["charges"] == [{"event": "sampled-gaussian", "rate": row["q"], "multiplier": 1.0, "steps": row["T"]}]


def test_the_noise_that_a_budget_needs():
    found = record(*SIZES, "--epsilon", 2, "--steps", 100, "--rounds", 4, "--accountant", "rdp")
    assert 1.99 < found["epsilon"] <= 2
    assert [point["round"] for point in found["epsilon_over_rounds"]] == [1, 2, 3, 4]
    again = record(*SIZES, "--sigma", found["sigma"], "--steps", 400, "--accountant", "rdp")
    assert again["epsilon"] == pytest.approx(found["epsilon"])


def test_the_published_formulas_are_labelled():
    found = account(*SIZES, "--sigma", 1, "--steps", 1406, "--mechanism", "published", "--accountant", "rdp")
    assert "published (NOT SOUND)" in found.stdout
    assert "gives no guarantee" in found.stdout
    as_json = record(*SIZES, "--sigma", 1, "--steps", 1406, "--mechanism", "published")
    assert as_json["sound"] is False
    assert as_json["accountant"] == "published"
    assert as_json["epsilon_by_accountant"]["pld"] is None


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_picture(tmp_path, ending):
    path = tmp_path / f"spending.{ending}"
    account(*SIZES, "--sigma", 1, "--steps", 60, "--accountant", "rdp", "--plot", path)
    content = path.read_bytes()
    assert content.startswith(b"<?xml" if ending == "svg" else b"\x89PNG")
    if ending == "svg":
        assert b"NOT SOUND" in content
        assert b"epsilon" in content


def test_mistakes_are_explained(tmp_path):
    assert "--sigma" in account(*SIZES, code=4).output
    assert "either --sigma" in account(*SIZES, "--sigma", 1, "--epsilon", 1, code=4).output
    assert "did you mean adafest" in account(*SIZES, "--sigma", 1, "--mechanism", "adafst", code=4).output
    assert "ends in .svg" in account(*SIZES, "--sigma", 1, "--plot", "x.bmp", code=4).output
    assert "no run here" in account(tmp_path, code=6).output
    failing = account(*SIZES, "--epsilon", 1, "--mechanism", "ptr", "--delta-t", 0.5, code=8)
    assert "smaller delta_t" in failing.output
    assert "got both" in account(tmp_path, *SIZES, code=4).output


def test_a_batch_beyond_the_data_is_the_whole_data():
    beyond, whole = (record("--batch", batch, "--triples", 10, "--sigma", 5, "--steps", 3) for batch in (64, 10))
    assert beyond["epsilon"] == whole["epsilon"] == pytest.approx(1.3, abs=0.3)
    assert beyond["sampling_rate"] == 1


@pytest.mark.parametrize("steps", [1, 7, 50])
def test_a_picture_of_one_round_ends_at_its_cost(steps):
    plan, rdp = CostPlan("dense", batch=64, triples=9000, steps=steps, decay=0.5), make_accountant("rdp")
    parts, across = picture_parts(plan, 1.0)
    assert epsilon_over_rounds(parts, 1e-5, rdp, 20)[-1][1] == rdp.epsilon(plan.charges(1.0), 1e-5)
    assert across == ("times 3 steps" if steps == 50 else "round" if steps == 1 else "times 1 steps")
    assert len(picture_parts(replace(plan, rounds=3), 1.0)[0]) == 3


def ledger_at(folder, rounds, client_names=("a", "b"), **changes):
    folder.mkdir()
    ledger = Ledger.open(folder / "ledger.jsonl")
    charges = (Charge(STEP, 10),)
    for client in client_names:
        promise = {"delta": 1e-5, "epsilon": 2.0, "accountant": "rdp", "largest_round": charges, **changes}
        promise["facts"] = structs.replace(changes.get("facts", FACTS), data=f"digest of {client}")
        ledger.promise(Promise(client, **promise))
        for number in range(1, rounds + 1):
            ledger.charge(client, number, charges)
            ledger.release(client, number)
    return folder


def test_what_runs_have_spent_together(tmp_path):
    runs = [ledger_at(tmp_path / "one", 2), ledger_at(tmp_path / "two", 3)]
    rdp = make_accountant("rdp")
    found = record(*runs)
    assert found["runs"][0]["clients"]["a"]["spent"] == rdp.epsilon([Charge(STEP, 20)], 1e-5)
    assert found["runs"][1]["clients"]["b"]["left"] == 2 - rdp.epsilon([Charge(STEP, 30)], 1e-5)
    assert found["together"] == dict.fromkeys("ab", rdp.epsilon([Charge(STEP, 50)], 1e-5))
    assert found["by_owners"]["2"] == rdp.epsilon([Charge(STEP, 100)], 1e-5)
    shown = account(*runs, "--delta", 1e-6).stdout
    assert "All runs together, at delta 1e-06 (rdp)" in shown
    assert "all 2 clients" in shown
    assert "named twice" in account(runs[0], runs[0], code=4).output


def test_a_ledger_for_others_has_no_digests(tmp_path):
    run = ledger_at(tmp_path / "one", 2)
    out = tmp_path / "new" / "passed-on.jsonl"
    done = account(run, "--pass-on", out)
    assert "Written for others to read" in done.output
    assert b"digest of a" in (run / "ledger.jsonl").read_bytes()
    assert b"digest of" not in out.read_bytes()
    assert record(out)["together"] == record(run)["together"]
    assert "a file is there already" in account(run, "--pass-on", out, code=4).output
    assert "of one run, got 2" in account(run, out, "--pass-on", tmp_path / "x", code=4).output
    assert "name its run directory" in account("--pass-on", tmp_path / "x", code=4).output


def test_a_torn_line_is_mentioned(tmp_path):
    run = ledger_at(tmp_path / "one", 2)
    path = run / "ledger.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    with another_machine():
        done = account(run)
    assert "1 torn line(s)" in done.output
    assert "no witness of this ledger" in done.output
    assert path.read_bytes()[-1:] != b"\n"


def test_of_different_deltas_the_smallest_counts(tmp_path):
    """It follows from each client's size, so clients differ; at the smallest no epsilon is too small."""
    runs = [ledger_at(tmp_path / "one", 1), ledger_at(tmp_path / "two", 1, delta=1e-6)]
    found = record(*runs)
    assert found["delta"] == 1e-6
    assert found["together"]["a"] == make_accountant("rdp").epsilon([Charge(STEP, 20)], 1e-6)


def test_filtered_runs_add_up_whole(tmp_path):
    runs = [ledger_at(tmp_path / name, 1, facts=FILTERED) for name in ("one", "two")]
    found = record(*runs, "--delta", 2e-5)
    assert found["together"] == {"a": 4.0, "b": 4.0}
    assert record(*runs, "--delta", 1e-5)["together"]["a"] is None
    mixed = {"a": Spending((Charge(STEP, 10),), ((1.0, 1e-6),)), "b": Spending((Charge(STEP, 10),))}
    rdp = make_accountant("rdp")
    by_owners = epsilon_by_owners(mixed, 1e-5, rdp)
    assert by_owners[1] == 1 + rdp.epsilon([Charge(STEP, 10)], 9e-6)
    assert by_owners[2] == 1 + rdp.epsilon([Charge(STEP, 20)], 9e-6)


def test_plans_are_mechanisms_with_numbers():
    plan = CostPlan("ptr", batch=100, triples=1000, steps=5, rounds=2, delta=1e-5)
    assert plan.event(3) == SampledTest(0.1, 3, 3, 3, 5e-6)
    assert CostPlan("ptr", 100, 1000, 5, gap=1, test=2, failure=1e-9).event(3) == SampledTest(0.1, 1, 2, 3, 1e-9)
    pair = CostPlan("adafest", 100, 1000, 5).event(3)
    assert isinstance(pair, SampledPair)
    assert pair.multiplier == pytest.approx(3)
    assert isinstance(CostPlan("published", 100, 1000, 5, passed=0).event(1), PublishedTest)
    for wrong in ({"steps": 0}, {"decay": 1.5}, {"selection_share": 1}, {"delta": 0}, {"mechanism": "none"}):
        with pytest.raises(ConfigurationError):
            CostPlan(**{"mechanism": "dense", "batch": 1, "triples": 10, "steps": 1, **wrong})


def test_curves_end_where_the_total_is():
    assert milestones(1, 10) == [1]
    assert milestones(7, 3) == [3, 5, 7]
    rounds = [[Charge(SampledGaussian(0.01, 1 - number / 20), 5)] for number in range(6)]
    pld = make_accountant("pld")
    curve = epsilon_over_rounds(rounds, 1e-5, pld, points=3)
    assert [number for number, _ in curve] == [2, 4, 6]
    assert curve[-1][1] == pytest.approx(pld.epsilon([charge for part in rounds for charge in part], 1e-5), rel=1e-9)
    assert [cost for _, cost in curve] == sorted(cost for _, cost in curve)


def test_a_plan_says_what_a_guess_is_worth():
    found = record(*SIZES, "--sigma", 1, "--steps", 1000)
    charges = [Charge.of_record(charge) for charge in found["charges"]]
    assert found["guess"] == guess_worth(charges, found["epsilon"], found["delta"]).record()
    assert 0.5 < found["guess"]["typical"] < found["guess"]["worst"]
    assert "whether the client holds one" in account(*SIZES, "--sigma", 1, "--steps", 1000).stdout
    assert record(*SIZES, "--sigma", 1, "--steps", 1406, "--mechanism", "published")["guess"] is None


@pytest.mark.parametrize(("epsilon", "typical", "answer"), [(2, 0.73, 0.52), (4, 0.88, 0.55), (8, 0.998, 0.998)])
def test_a_copy_says_what_counts_and_answers_are_worth_together(epsilon, typical, answer):
    (client, *few) = record("--mechanism", "copy", "--epsilon", epsilon)["clients"]
    assert client["guess"]["typical"] == pytest.approx(typical, abs=0.015)
    assert client["guess"]["answer"] == pytest.approx(answer, abs=0.006)
    assert [each["guess"]["answer"] < 0.61 for each in few] == ([True] if epsilon == 8 else [])
    assert "each answer" in account("--mechanism", "copy", "--epsilon", epsilon).stdout
    assert "no --sigma" in account("--mechanism", "copy", "--sigma", 1, code=4).output


def test_runs_say_what_a_guess_is_worth_after_all_of_them(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    charges = (Charge(Geometric(2 / 3.8)), Charge(Responses(0.2)))
    ledger = Ledger.open(folder / "ledger.jsonl")
    ledger.promise(Promise("client-0", 1e-5, 4.0, largest_round=charges))
    ledger.charge("client-0", 1, charges)
    found = record(folder)
    assert found["guess"]["client-0"]["typical"] == pytest.approx(0.881, abs=0.001)
    assert "88.1 %" in account(folder).stdout
