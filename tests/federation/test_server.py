from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedkge.base.errors import NumericalError, RunError
from fedkge.federation.aggregation import average
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import Failure, Fit, Greeting, Hello, RankingMetrics
from fedkge.federation.server import Server, ServerPlan, weighted_mean
from fedkge.runs.run import shape_of
from tests.short_runs import Mischief, make_clients, short, with_rows


def plan(**changes):
    return replace(ServerPlan(shape_of(short()), seed=5), **changes)


def federation(shards, **changes):
    configuration = short()
    clients = make_clients(shards, configuration)
    engine = Mischief(clients)
    return Server(engine, plan(**changes)), engine, clients


def broken(value):
    def change(upload):
        rows = upload.rows["entities"].copy()
        rows[1, 1] = value
        return with_rows(upload, entities=rows)

    return change


SPOILED = {
    "shape": (lambda u: with_rows(u, entities=u.rows["entities"][1:]), "entities: expected shape"),
    "dtype": (lambda u: with_rows(u, entities=u.rows["entities"].astype(np.float64)), "float32 table, got float64"),
    "not an array": (lambda u: with_rows(u, entities=[[1.0]]), "expected a float32 table, got list"),
    "nan": (broken(np.nan), "entities: 1 of"),
    "inf": (broken(np.inf), "not finite"),
    "norm": (broken(1e6), "row norm 1e+06 exceeds the largest allowed, 1000"),
    "overflow": (broken(3e38), "row norm 3e+38 exceeds the largest allowed, 1000"),
    "unknown table": (
        lambda u: with_rows(u, relations=np.zeros((4, 8), np.float32)),
        "expected the tables ['entities'], got ['entities', 'relations']",
    ),
    "missing table": (lambda u: replace(u, rows={}), "expected the tables ['entities'], got []"),
    "round": (lambda u: replace(u, round=7), "expected an upload of round 2, got 7"),
    "boast": (lambda u: replace(u, triples=10**9), "expected a number of triples of"),
    "loss": (lambda u: replace(u, loss=float("nan")), "expected a finite loss of at most 1,000,000, got nan"),
    "loss beyond float": (lambda u: replace(u, loss=10**30), "expected a finite loss of at most 1,000,000, got 1000"),
    "loss beyond reason": (lambda u: replace(u, loss=1e308), "expected a finite loss of at most 1,000,000, got 1e+308"),
    "other message": (lambda _: RankingMetrics(1), "expected an upload, got RankingMetrics"),
    "failure": (lambda _: Failure("client-1", "the power is out"), "the power is out"),
    "silence": (lambda _: None, "no answer"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_bad_uploads_are_refused_with_name_and_reason_and_the_round_goes_on(shards, name):
    spoil, reason = SPOILED[name]
    server, engine, _ = federation(shards)
    engine.spoil[2, "client-1"] = spoil
    assert server.run_round().refused == {}
    before = server.tables["entities"].copy()
    report = server.run_round()
    assert set(report.refused) == {"client-1"}
    assert reason in report.refused["client-1"]
    assert set(report.uploads) == set(report.bytes_up) == {"client-0", "client-2"}
    rows = {client: upload.rows["entities"] for client, upload in report.uploads.items()}
    expected = average(before, rows, server.owners["entities"], {"client-0": 1.0, "client-2": 1.0})
    np.testing.assert_array_equal(server.tables["entities"], expected)
    again = server.run_round()
    assert again.refused == {}
    assert set(again.uploads) == {"client-0", "client-1", "client-2"}


def test_below_the_minimum_the_server_stops_and_loses_nothing(shards):
    undisturbed, *_ = federation(shards)
    server, engine, _ = federation(shards, minimum_clients=2)
    for each in (undisturbed, server):
        each.run_round()
    saved = server.tables["entities"].copy()
    engine.spoil[2, "client-0"] = engine.spoil[2, "client-2"] = lambda _: Failure("?", "gone fishing")
    expected = (
        r"round 2: expected at least 2 valid uploads, got 1 \(client-0: gone fishing; client-2: gone fishing\). "
        "Everything up to round 1 is saved"
    )
    with pytest.raises(RunError, match=expected):
        server.run_round()
    assert server.round == 1
    np.testing.assert_array_equal(server.tables["entities"], saved)
    engine.spoil.clear()
    server.run_round()
    undisturbed.run_round()
    assert server.tables["entities"].tobytes() == undisturbed.tables["entities"].tobytes()


def test_a_round_that_fails_half_way_leaves_no_trace_in_the_client(shards, monkeypatch):
    """Its relations, kept optimiser state and step count are as if it had not been invited."""
    configuration = short(optimiser_state="kept")
    failing, absent = (make_clients(shards, configuration) for _ in range(2))
    servers = [Server(EmbeddedEngine(clients, threads=1), plan()) for clients in (failing, absent)]
    reports = [server.run_round() for server in servers]
    assert [report.refused for report in reports] == [{}, {}]

    trainer = failing["client-1"]._trainer
    step, calls = trainer.step, []

    def fail_at_the_third_step(batch, generator):
        calls.append(1)
        loss = step(batch, generator)
        if len(calls) == 3:
            trainer.embedding.tables.relations[...] = np.nan
            raise NumericalError("the loss became nan")
        return loss

    monkeypatch.setattr(trainer, "step", fail_at_the_third_step)
    absent_client = absent["client-1"]
    handle = absent_client.handle
    monkeypatch.setattr(
        absent_client, "handle", lambda request: Failure("", "") if isinstance(request, Fit) else handle(request)
    )
    reports = [server.run_round() for server in servers]
    assert reports[0].refused == {"client-1": "the loss became nan"}
    monkeypatch.undo()
    for _ in range(2):
        reports = [server.run_round() for server in servers]
        assert [report.refused for report in reports] == [{}, {}]
    assert servers[0].tables["entities"].tobytes() == servers[1].tables["entities"].tobytes()
    for name, client in failing.items():
        for key, array in client._lasting().items():
            assert array.tobytes() == absent[name]._lasting()[key].tobytes()


def test_a_repeated_request_gets_the_same_upload_and_trains_once(shards):
    client = make_clients(shards, short())["client-0"]
    rows = {"entities": client.embedding.tables.entities.copy()}
    first, second = (client.handle(Fit(1, rows)) for _ in range(2))
    assert first.rows["entities"].tobytes() == second.rows["entities"].tobytes()
    assert first.rows["entities"] is not second.rows["entities"]
    assert client.round == 1
    with pytest.raises(RunError, match="do not belong together"):
        client.handle(Fit(1, {"entities": rows["entities"] + 1}))
    client.handle(Fit(2, rows))
    with pytest.raises(RunError, match="trained round 2 and is now asked for round 1"):
        client.handle(Fit(1, rows))


def test_uploads_share_no_memory_with_the_client(shards):
    client = make_clients(shards, short())["client-0"]
    upload = client.handle(Fit(1, {"entities": client.embedding.tables.entities.copy()}))
    kept = upload.rows["entities"].copy()
    client.handle(Fit(2, {"entities": np.zeros_like(kept)}))
    np.testing.assert_array_equal(upload.rows["entities"], kept)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: {}, r"expected the tables \['entities'\], was sent \[\]"),
        (lambda rows: {**rows, "relations": np.zeros((4, 8), np.float32)}, "was sent .*relations"),
        (lambda rows: {"entities": rows["entities"][:1]}, "broken entities: expected shape"),
        (lambda rows: {"entities": rows["entities"] * np.float32(np.nan)}, "not finite"),
    ],
)
def test_a_client_refuses_broken_broadcasts(shards, change, reason):
    client = make_clients(shards, short())["client-0"]
    relations = client.embedding.tables.relations.copy()
    with pytest.raises(RunError, match=reason):
        client.handle(Fit(1, change({"entities": client.embedding.tables.entities.copy()})))
    assert client.round == 0
    np.testing.assert_array_equal(client.embedding.tables.relations, relations)


class Greeter:
    def __init__(self, reply):
        self._reply = reply

    def handle(self, request):
        assert isinstance(request, Hello)
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


GOOD = Greeting({"entities": ("a", "b")}, {"entities": 8}, 3)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (RunError("my disk is gone"), "client-1 did not join the federation: my disk is gone"),
        (RankingMetrics(3), "client-1 did not join the federation: got RankingMetrics, not a greeting"),
        (replace(GOOD, widths={"entities": 16}), "expected tables of widths {'entities': 8}, got {'entities': 16}"),
        (Greeting({"relations": ("r",)}, {"relations": 8}, 3), "got {'relations': 8}; all clients need"),
        (replace(GOOD, names={"entities": ("a", "a")}), "names some of its entities twice"),
    ],
)
def test_who_cannot_join_is_named(reply, reason):
    engine = EmbeddedEngine({"client-0": Greeter(GOOD), "client-1": Greeter(reply)}, threads=2)
    with pytest.raises(RunError) as caught:
        Server(engine, plan())
    assert reason in str(caught.value)


def test_the_union_keeps_the_order_of_first_appearance():
    greetings = {"client-0": ("b", "a"), "client-1": ("c", "a")}
    clients = {name: Greeter(replace(GOOD, names={"entities": names})) for name, names in greetings.items()}
    server = Server(EmbeddedEngine(clients, threads=1), plan())
    assert server.names["entities"] == {"b": 0, "a": 1, "c": 2}
    assert {name: places.tolist() for name, places in server.owners["entities"].items()} == {
        "client-0": [0, 1],
        "client-1": [2, 1],
    }


def test_a_program_error_in_a_client_stops_the_program():
    engine = EmbeddedEngine({"client-0": Greeter(ZeroDivisionError("a bug"))}, threads=1)
    with pytest.raises(ZeroDivisionError):
        engine.exchange({"client-0": Hello()})


def test_a_fraction_of_the_clients_is_invited_and_the_seed_decides(shards):
    def invited(seed):
        server, *_ = federation(shards, fraction=0.6, seed=seed)
        return [tuple(server.run_round().uploads) for _ in range(5)]

    rounds = invited(5)
    assert {len(names) for names in rounds} == {2}
    assert len(set(rounds)) > 1
    assert rounds == invited(5)
    assert any(invited(seed) != rounds for seed in (6, 7))


def test_the_minimum_is_always_invited(shards):
    server, *_ = federation(shards, fraction=0.01, minimum_clients=2)
    assert len(server.run_round().uploads) == 2


def test_bytes_are_rows_times_width_times_four(shards):
    server, engine, clients = federation(shards)
    engine.spoil[1, "client-2"] = lambda _: Failure("client-2", "away")
    report = server.run_round()
    by_hand = {name: len(client.shard.entities) * 8 * 4 for name, client in clients.items()}
    assert report.bytes_down == by_hand
    del by_hand["client-2"]
    assert report.bytes_up == by_hand


def test_loss_is_weighted_by_triples(shards):
    report = federation(shards)[0].run_round()
    total = sum(len(shard.train) for shard in shards)
    by_hand = sum(u.loss * len(s.train) / total for u, s in zip(report.uploads.values(), shards, strict=True))
    assert report.loss == pytest.approx(by_hand)


def test_a_client_that_cannot_evaluate_is_named(shards, monkeypatch):
    server, _, clients = federation(shards)
    monkeypatch.setattr(clients["client-2"], "_evaluate", lambda _: Failure("client-2", "no memory"))
    with pytest.raises(RunError, match="client-2 could not evaluate: no memory"):
        server.evaluate("valid")


@pytest.mark.parametrize("cause", ["diverged", "away", "both"])
def test_too_few_uploads_because_of_divergence(shards, cause):
    """A numerical error only where nobody failed for another reason: a client that was away may come back."""
    server, engine, _ = federation(shards, minimum_clients=2)
    diverged, away = Failure("client-0", "the loss became nan", diverged=True), Failure("client-1", "away")
    first, second = {"diverged": (diverged, diverged), "away": (away, away), "both": (diverged, away)}[cause]
    engine.spoil[1, "client-0"], engine.spoil[1, "client-1"] = lambda _: first, lambda _: second
    with pytest.raises(NumericalError if cause == "diverged" else RunError, match="got 1"):
        server.run_round()


def test_an_evaluation_that_is_not_finite_is_a_numerical_error(shards):
    server, _, clients = federation(shards)
    clients["client-1"].embedding.tables.relations[...] = np.nan
    with pytest.raises(NumericalError, match="client-1 could not evaluate: expected finite scores, got nan"):
        server.evaluate("valid")


def test_metrics_are_weighted_by_ranked_triples(shards):
    server, *_ = federation(shards)
    scores = server.evaluate("test")
    assert {name: score.triples for name, score in scores.items()} == {
        f"client-{i}": len(shard.test) for i, shard in enumerate(shards) if len(shard.test)
    }
    mean = weighted_mean(scores)
    key = "both.realistic.mrr"
    total = sum(score.triples for score in scores.values())
    assert mean[key] == pytest.approx(sum(s.metrics[key] * s.triples for s in scores.values()) / total)
    assert weighted_mean({}) == {}


def test_a_client_with_other_metrics_is_named(shards, monkeypatch):
    server, _, clients = federation(shards)
    monkeypatch.setattr(clients["client-0"], "_evaluate", lambda _: RankingMetrics(10**12, {"mine": 1.0}))
    with pytest.raises(RunError, match="client-0 could not evaluate: expected"):
        server.evaluate("valid")
