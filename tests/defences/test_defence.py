"""Federations under a defence: what is paid, what is promised, what is sent, and when clients stop."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import resume, start
from fedkge.base.errors import ConfigurationError, PrivacyError, RunError
from fedkge.cli.budget import budget_record, budget_table
from fedkge.defences import check_defence, parse
from fedkge.defences.planning import client_defence
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Evaluate, Fit, Goodbye, Hello, Upload
from fedkge.federation.observer import Observer
from fedkge.federation.training import Federation
from fedkge.runs.directory import RunDirectory
from fedkge.runs.state_file import StateFile
from tests.machines import another_machine
from tests.short_runs import SHORT

NOISY = {"defence": "noisy-steps", "noise": 3.0, "noise_seed": 1, "evaluate_every": 0}


def defended(**options):
    return parse({**SHORT, **NOISY, **options})


def client_of(shard, configuration, ledger=None, folder=None):
    ledger = ledger or Ledger.in_memory()
    defence = client_defence(configuration, "client-0", shard, ledger)
    plan = ClientPlan(configuration, 5, 0, ("entities",), defence=defence, ledger=ledger)
    return Client("client-0", shard, plan, folder)


def rows_of(client):
    return {"entities": client.embedding.tables.entities.copy()}


def killed(client, monkeypatch, moment, number=1):
    """The client's round breaks off at this moment."""

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moment, kill)
        with pytest.raises(KeyboardInterrupt):
            client.handle(Fit(number, rows_of(client)))


def test_an_upload_tells_nothing_but_noised_rows(shards):
    client = client_of(shards[0], defended())
    reply = client.handle(Fit(1, rows_of(client)))
    public = client._plan.defence.triples
    assert isinstance(reply, Upload)
    assert (reply.loss, reply.triples, client.handle(Hello()).triples) == (None, public, public)
    assert public != len(shards[0].train)


def test_every_row_of_an_upload_is_noised_even_of_a_client_with_one_triple(shards):
    lonely = replace(shards[0], train=shards[0].train[:1])
    client = client_of(lonely, defended(public_triples=100))
    before, relations = rows_of(client), client.embedding.tables.relations.copy()
    reply = client.handle(Fit(1, before))
    assert (reply.rows["entities"] != before["entities"]).any(axis=1).all()
    assert (client.embedding.tables.relations != relations).any(axis=1).all()


def test_a_round_is_charged_before_it_is_trained_and_released_before_it_leaves(shards):
    class Watched(Ledger):
        """Writes down what it is asked, and what the client's tables were at that moment."""

        def __init__(self):
            super().__init__(None)
            self.heard = []

        def charge(self, client, round, charges):  # noqa: A002
            self.heard.append(("charge", round, site.embedding.tables.entities.copy()))
            super().charge(client, round, charges)

        def release(self, client, round, state=""):  # noqa: A002
            self.heard.append(("release", round, site.embedding.tables.entities.copy()))
            super().release(client, round, state)

    ledger = Watched()
    site = client_of(shards[0], defended(), ledger)
    before = rows_of(site)
    reply = site.handle(Fit(1, before))
    (first, _, untouched), (second, _, trained) = ledger.heard
    assert (first, second) == ("charge", "release")
    np.testing.assert_array_equal(untouched, before["entities"])
    np.testing.assert_array_equal(trained, reply.rows["entities"])


def test_a_ledger_that_cannot_be_written_stops_the_upload(shards, tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    client = client_of(shards[0], defended(), ledger)
    before = rows_of(client)
    (tmp_path / "ledger.jsonl").write_bytes(b"")
    with pytest.raises(PrivacyError, match="Nothing was released"):
        client.handle(Fit(1, before))
    np.testing.assert_array_equal(client.embedding.tables.entities, before["entities"])


def test_a_server_cannot_ask_for_the_ranks_of_private_triples(shards):
    client = client_of(shards[0], defended())
    with pytest.raises(PrivacyError, match="no budget pays for"):
        client.handle(Evaluate(rows_of(client), "valid"))


def test_the_same_request_again_costs_nothing_and_gives_the_same_upload(shards):
    client = client_of(shards[0], defended(noise_seed=None))
    request = Fit(1, rows_of(client))
    one, two = client.handle(request), client.handle(request)
    np.testing.assert_array_equal(one.rows["entities"], two.rows["entities"])
    assert len(client._plan.ledger.by_round("client-0")) == 1


def test_a_rolled_back_client_pays_again(shards, tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    configuration = defended(noise_seed=None)
    client = client_of(shards[0], configuration, ledger, tmp_path)
    client.save()
    shutil.copy(tmp_path / "client-0.safetensors", tmp_path / "copy")
    request = Fit(1, rows_of(client))
    client.handle(request)
    shutil.copy(tmp_path / "copy", tmp_path / "client-0.safetensors")
    again = client_of(shards[0], configuration, Ledger.open(tmp_path / "ledger.jsonl"), tmp_path)
    again.handle(request)
    assert [entry.round for entry in again._plan.ledger.by_round("client-0")] == [1, 1]


def test_a_round_that_failed_before_it_left_is_not_paid_twice(shards, tmp_path, monkeypatch):
    client = client_of(shards[0], defended(), folder=tmp_path)
    request = Fit(1, rows_of(client))

    def no_space(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("fedkge.runs.state_file.write_tensors_beside", no_space)
        with pytest.raises(OSError, match="no space"):
            client.handle(request)
    client.handle(request)
    assert len(client._plan.ledger.by_round("client-0")) == 1


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_noise_is_calibrated_to_the_budget_of_all_rounds(shards, accountant):
    configuration = defended(noise=None, epsilon=3.0, accountant=accountant, rounds=4)
    run = Federation(shards, configuration).run()
    for spent in run.epsilon().values():
        assert 2.9 < spent <= 3.0
    assert [len(run.ledger.by_round(name)) for name in run.clients] == [4, 4, 4]


def test_clients_stop_at_their_own_budget_and_the_rest_go_on(shards):
    small = replace(shards[2], train=shards[2].train[:40])  # a higher sampling rate: each round costs more
    configuration = defended(noise=1.2, epsilon=8.0, rounds=60, batch_size=16, local_steps=4, accountant="rdp")
    run = Federation([shards[0], shards[1], small], configuration).run()
    rounds = {name: len(run.ledger.by_round(name)) for name in run.clients}
    assert 0 < rounds["client-2"] < rounds["client-0"] < 60
    for name, spent in run.epsilon().items():
        defence = client_defence(configuration, name, shards[0], run.ledger)
        more = (*run.ledger.charges(name), *run.ledger.by_round(name)[-1].charges)
        assert spent <= 8.0 < defence.accountant.epsilon(more, 1e-5)


def test_goodbye_is_said_without_training(shards):
    client = client_of(shards[0], defended(noise=1.0, epsilon=8.0, batch_size=64, accountant="rdp"))
    round_number, reply = 0, None
    while not isinstance(reply, Goodbye):
        round_number += 1
        before = rows_of(client)
        reply = client.handle(Fit(round_number, before))
    np.testing.assert_array_equal(client.embedding.tables.entities, before["entities"])
    assert len(client._plan.ledger.by_round("client-0")) == round_number - 1


def test_the_last_round_is_kept_not_the_best_on_private_triples(shards):
    run = Federation(shards, defended(evaluate_every=1, rounds=3)).run()
    assert [line["round"] for line in run.metrics] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"defence": "none", "epsilon": 1.0}, "defence none keeps no budget"),
        ({"defence": "dpsgd"}, "needs a budget"),
        ({"patience": 3}, "patience"),
        ({"filter_negatives": True, "negative_group": 1}, "filtered negatives"),
        ({"regularisation": 0.1}, "not clipped"),
        ({"selection": "adafest"}, "negatives inside"),
        ({"noise_schedule": "validation", "epsilon": 1.0}, "public-validation"),
        ({"selection": "everything"}, "unknown selection"),
        ({"init": "runs/open"}, "start vectors"),
        ({"public_graph": "demo", "private_negatives": "public"}, "cannot be the public graph"),
    ],
)
def test_promises_that_could_not_be_kept_are_refused(options, reason):
    base = {} if "defence" in options else NOISY
    with pytest.raises((PrivacyError, ConfigurationError), match=reason):
        check_defence(parse({**base, **options}))


def test_a_budget_that_cannot_pay_one_round_is_refused_before_training(shards):
    with pytest.raises(PrivacyError, match=r"one round of .* costs epsilon"):
        Federation(shards, defended(noise=0.5, epsilon=0.1, accountant="rdp"))


def test_resume_keeps_the_promise_whatever_calibration_would_say_now(shards, tmp_path, monkeypatch):
    configuration = defended(noise=None, epsilon=5.0, rounds=2, accountant="rdp")
    run = start(configuration, shards.graphs, tmp_path)
    noise = {name: promise.plan.noise for name, promise in run.ledger.promises.items()}
    text = (tmp_path / "config.toml").read_text()
    (tmp_path / "config.toml").write_text(text.replace("rounds = 2", "rounds = 9"))
    longer = resume(tmp_path, data=shards)
    assert {name: promise.plan.noise for name, promise in longer.ledger.promises.items()} == noise
    assert all(4.8 < spent <= 5.0 for spent in longer.epsilon().values()), (
        "rounds beyond the plan are beyond the budget"
    )
    assert len(longer.ledger.by_round("client-0")) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"selection": "adafest", "private_negatives": "public"},
        {"selection": "fest", "private_negatives": "public"},
        {"selection": "ptr", "private_negatives": "public", "row_clip": 0.4, "batch_size": 16},
        {"selection": "ptr-published", "private_negatives": "public", "row_clip": 0.4, "batch_size": 16},
        {"selection": "dense-published"},
        {"noise_schedule": "decay"},
        {"optimiser": "sgd"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_mechanism_trains_a_federation_and_is_charged_every_round(shards, options):
    run = Federation(shards, defended(**options)).run()
    assert all(len(run.ledger.by_round(name)) == 3 for name in run.clients)
    assert all(np.isfinite(table).all() for table in run.tensors.values())


def test_how_many_tests_passed_is_logged_told_and_kept_by_a_resumed_run(shards, tmp_path):
    class Watched(Observer):
        """Keeps what it hears of rounds."""

        heard: ClassVar[list] = []

        def round_done(self, facts):
            self.heard.append(facts["tests"]["client-0"]["made"])

    configuration = defended(selection="ptr", private_negatives="public", row_clip=0.4, batch_size=16, rounds=2)
    steps = client_of(shards[0], configuration)._plan.defence.steps
    start(configuration, shards.graphs, tmp_path, observer=Watched())
    text = (tmp_path / "config.toml").read_text()
    (tmp_path / "config.toml").write_text(text.replace("rounds = 2", "rounds = 3"))
    run = resume(tmp_path, data=shards, observer=Watched())
    assert Watched.heard == [steps, 2 * steps, 3 * steps]
    assert run.metrics[-1]["tests"]["client-0"] == {"made": 3 * steps, "passed": 0}
    record = budget_record(run)
    assert record["client-0"]["tests"] == {"made": 3 * steps, "passed": 0}
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(budget_table(record))
    assert f"0 of {3 * steps:,}" in console.export_text()


def test_a_defence_without_tests_tells_of_none(shards):
    run = Federation(shards, defended()).run()
    assert "tests" not in run.metrics[-1]
    assert "tests" not in budget_record(run)["client-0"]


def test_the_histogram_of_fest_is_paid_in_the_first_round_that_a_client_trains(shards):
    client = client_of(shards[0], defended(selection="fest", private_negatives="public"))
    client.handle(Fit(4, rows_of(client)))
    client.handle(Fit(5, rows_of(client)))
    first, second = client._plan.ledger.by_round("client-0")
    assert [charge.steps for charge in first.charges] == [1, client._plan.defence.steps]
    assert [charge.steps for charge in second.charges] == [client._plan.defence.steps]


def test_noise_by_public_validation_is_limited_by_a_filter(shards, graph, tmp_path):
    public = tmp_path / "public.tsv"
    lines = ["\t".join((graph.entities[h], graph.relations[r], graph.entities[t])) for h, r, t in graph.valid.tolist()]
    public.write_text("\n".join(lines) + "\n")
    configuration = defended(
        noise=None,
        epsilon=6.0,
        noise_schedule="validation",
        public_validation=str(public),
        evaluate_every=1,
        rounds=4,
        least_gain=1.0,
        noise_decay=0.9,
    )
    run = Federation(shards, configuration).run()
    noises = [entry.charges[-1].event.multiplier for entry in run.ledger.by_round("client-0")]
    np.testing.assert_allclose(np.array(noises) / noises[0], [1, 1, 0.9, 0.81][: len(noises)])
    assert run.epsilon()["client-0"] == 6.0, "the filter's bound is the guarantee, not the running sum"


def test_overwriting_a_run_does_not_forget_what_it_spent(shards, tmp_path):
    first = start(defended(), shards.graphs, tmp_path)
    start(defended(rounds=2), shards.graphs, tmp_path, overwrite=True)
    start(defended(defence="none", noise=None, noise_seed=None), shards.graphs, tmp_path, overwrite=True)
    kept = [Ledger.read(path) for path in RunDirectory(tmp_path).earlier_ledgers()]
    assert [len(ledger.by_round("client-0")) for ledger in kept] == [3, 2]
    assert kept[0].charges("client-1") == first.ledger.charges("client-1")


def test_states_are_mended_while_nobody_else_can_train(shards, tmp_path, monkeypatch):
    """Another process would take away the state that a running one has written and not put in its place yet."""
    genuine, alone = StateFile.load, []

    def load(file):
        with pytest.raises(RunError, match="another process is training"), RunDirectory(tmp_path).locked():
            pass
        alone.append(file.path)
        return genuine(file)

    monkeypatch.setattr(StateFile, "load", load)
    start(defended(), shards.graphs, tmp_path)
    assert len(alone) == len(shards)


@pytest.mark.parametrize("kept", [0, 5])
def test_a_run_whose_ledger_lacks_lines_is_not_overwritten(shards, tmp_path, kept):
    """Its states show what is missing; removed, they would show nothing, and less would count as spent."""
    start(defended(), shards.graphs, tmp_path)
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    with another_machine(), pytest.raises(PrivacyError, match="lines are missing"):
        start(defended(), shards.graphs, tmp_path, overwrite=True)
    assert (tmp_path / "model.safetensors").exists()


def test_a_damaged_state_and_a_broken_off_removal_keep_nobody_from_overwriting(shards, tmp_path):
    start(defended(), shards.graphs, tmp_path)
    (tmp_path / "checkpoints" / "client-0.safetensors").write_bytes(b"damaged")
    start(defended(), shards.graphs, tmp_path, overwrite=True)
    (tmp_path / "ledger.jsonl").rename(tmp_path / "ledger-002.jsonl")
    start(defended(), shards.graphs, tmp_path, overwrite=True)
    assert len(RunDirectory(tmp_path).earlier_ledgers()) == 2


def test_an_impossible_plan_neither_begins_a_run_nor_removes_one(shards, tmp_path):
    start(defended(), shards.graphs, tmp_path / "old")
    impossible = defended(noise=None, epsilon=1e-6, accountant="rdp")
    with pytest.raises(PrivacyError, match="cannot be kept"):
        start(impossible, shards.graphs, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(PrivacyError, match="cannot be kept"):
        start(impossible, shards.graphs, tmp_path / "old", overwrite=True)
    assert (tmp_path / "old" / "model.safetensors").exists()


def test_the_noise_follows_from_the_rounds_that_were_served_not_from_their_numbers(shards):
    client = client_of(shards[0], defended(noise_schedule="decay", noise_decay=0.5, rounds=4))
    for number in (3, 9, 11):
        client.handle(Fit(number, rows_of(client)))
    noises = [entry.charges[0].event.multiplier for entry in client._plan.ledger.by_round("client-0")]
    assert noises == [3.0, 1.5, 0.75]


def test_a_promise_names_the_data_by_a_digest_of_the_client_s_own(shards):
    ledger = Ledger.in_memory(kept=True)
    for name, shard in (("client-0", shards[0]), ("client-1", shards[1])):
        client_defence(defended(), name, shard, ledger)
    again = Ledger.in_memory(kept=True)
    client_defence(defended(rounds=1), "client-0", shards[0], again)
    digests = [ledger.promises[name].facts.data for name in ledger.clients]
    assert len(set(digests)) == 2
    assert again.promises["client-0"].facts.data == digests[0]


def test_a_step_whose_noise_would_go_too_far_is_taken_more_slowly(shards):
    options = {"optimiser": "sgd", "learning_rate": 50.0, "noise_step": 0.01, "clip": 0.5, "batch_size": 32}
    client = client_of(shards[0], defended(**options))
    client.handle(Fit(1, rows_of(client)))
    assert client._trainer.entity_optimiser.rate == pytest.approx(0.01 * 32 / (3.0 * 0.5))
    quieter = client_of(shards[0], defended(**{**options, "noise": 0.001}))
    quieter.handle(Fit(1, rows_of(quieter)))
    assert quieter._trainer.entity_optimiser.rate == 50.0
