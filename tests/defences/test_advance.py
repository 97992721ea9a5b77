"""The size that a client releases before its promise: paid first, drawn once, the same after every kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.overwritten import overwritten_runs
from fedkge.accounting.statements import spending_over_runs
from fedkge.api.training import resume, start
from fedkge.base.errors import PrivacyError
from fedkge.defences import advance
from fedkge.defences.advance import SIZE, assume_exact_size
from fedkge.defences.planning import client_defence, planned_defence
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Fit, Hello
from fedkge.mechanisms.events import Charge, Size
from fedkge.mechanisms.size import size_event
from tests.defences.test_defence import client_of, defended, rows_of

ROOT = Path(__file__).parents[2]
SECRET = {"noise_seed": None, "noise": None, "epsilon": 4.0}


def size_in(ledger: Ledger, client: str = "client-0") -> int:
    return int(ledger.once(client)[SIZE].value)


def test_a_size_is_on_the_disk_with_its_price_before_it_is_used(shards, tmp_path, monkeypatch):
    path, seen = tmp_path / "ledger.jsonl", []

    def calibrated(options, public):
        seen.append((Ledger.read(path), public.triples, public.advance))
        raise KeyboardInterrupt

    monkeypatch.setattr("fedkge.defences.planning.calibrated", calibrated)
    with pytest.raises(KeyboardInterrupt):
        client_defence(defended(**SECRET), "client-0", shards[0], Ledger.open(path))
    ((ledger, triples, paid),) = seen
    assert size_in(ledger) == triples
    assert ledger.charges("client-0") == paid == (Charge(size_event(4.0)),)
    assert ledger.spent("client-0") == pytest.approx(0.05, rel=1e-2)


def test_a_second_start_uses_the_size_of_the_first(shards, tmp_path):
    path, options = tmp_path / "ledger.jsonl", defended(**SECRET)
    first = planned_defence(options, "client-0", shards[0], Ledger.open(path))
    lines = path.read_bytes()
    for _ in range(3):
        ledger = Ledger.open(path)
        assert not ledger.is_promised("client-0")
        assert planned_defence(options, "client-0", shards[0], ledger).triples == first.triples
    assert path.read_bytes() == lines
    kept = client_defence(options, "client-0", shards[0], Ledger.open(path))
    assert kept == first
    again = client_defence(options, "client-0", shards[0], Ledger.open(path))
    assert (again.triples, again.noise, again.delta) == (kept.triples, kept.noise, kept.delta)


def test_a_draw_that_was_not_written_is_gone_and_costs_nothing(shards, tmp_path, monkeypatch):
    path, drawn = tmp_path / "ledger.jsonl", []
    true = advance.noisy_size

    def killed(*arguments):
        drawn.append(true(*arguments))
        raise KeyboardInterrupt

    options = defended(**SECRET)
    with monkeypatch.context() as patched:
        patched.setattr(advance, "noisy_size", killed)
        with pytest.raises(KeyboardInterrupt):
            client_defence(options, "client-0", shards[0], Ledger.open(path))
    assert path.read_bytes() == b""
    ledger = Ledger.open(path)
    client_defence(options, "client-0", shards[0], ledger)
    assert ledger.charges("client-0") == (Charge(size_event(4.0)),)


@pytest.mark.parametrize("torn", [1, 40])
def test_a_torn_line_is_no_size(shards, tmp_path, torn):
    """Half of the line is on the disk: its value was never used, so another may be drawn for one price."""
    path, options = tmp_path / "ledger.jsonl", defended(**SECRET)
    planned_defence(options, "client-0", shards[0], Ledger.open(path))
    path.write_bytes(path.read_bytes()[:-torn])
    ledger = Ledger.open(path)
    assert ledger.once("client-0") == {}
    client_defence(options, "client-0", shards[0], ledger)
    assert ledger.charges("client-0") == (Charge(size_event(4.0)),)
    assert Ledger.read(path).promises == ledger.promises


KILLED = """
import os, signal, sys
from fedkge.accounting.ledger import Ledger
from fedkge.defences import advance, planning
from tests.defences.test_advance import SECRET
from tests.defences.test_defence import defended
from fedkge.graph import Graph

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

moment, path = sys.argv[1:]
graph = Graph.from_names("g", train=[(f"e{i % 30}", "r", f"e{i % 29}") for i in range(200)])
ledger = Ledger.open(path)
true = advance.noisy_size
if moment == "drawn":
    advance.noisy_size = lambda *all: (true(*all), kill())
if moment == "written":
    append = ledger._append
    ledger._append = lambda record: (append(record), kill() if record["kind"] == "once" else None)
if moment == "calibrated":
    calibrated = planning.calibrated
    planning.calibrated = lambda *all: (calibrated(*all), kill())
if moment == "promised":
    append = ledger._append
    ledger._append = lambda record: (append(record), kill() if record["kind"] == "promise" else None)
made = planning.client_defence(defended(**SECRET), "client-0", graph, ledger)
print(made.triples, made.noise, flush=True)
"""


def test_kill_9_between_any_two_steps(tmp_path):
    """Every moment once, then a start that is left alone: one price, and never two sizes that anybody could know."""
    path = tmp_path / "ledger.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}

    def run(moment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, moment, str(path)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    sizes = []
    for moment in ("drawn", "written", "calibrated", "promised"):
        assert run(moment).returncode == -signal.SIGKILL
        ledger = Ledger.read(path)
        sizes += [size_in(ledger)] if ledger.clients else []
        assert ledger.charges("client-0") == (Charge(size_event(4.0)),) if ledger.clients else moment == "drawn"
    assert len(sizes) == 3
    assert len(set(sizes)) == 1
    finished = run("never")
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout.split()[0]) == sizes[0]
    assert [line.count('"kind"') for line in path.read_text().splitlines()] == [1, 1], "a size and a promise"


def test_a_size_is_released_once_and_before_the_promise(shards):
    ledger = Ledger.in_memory()
    client_defence(defended(**SECRET), "client-0", shards[0], ledger)
    promise = ledger.promises["client-0"]
    with pytest.raises(PrivacyError, match="must be released before the promise and once"):
        ledger.pay_once(promise, SIZE, (Charge(Size(20)),), 7)
    other = replace(promise, client="client-1")
    ledger.pay_once(other, SIZE, (Charge(Size(20)),), 7)
    with pytest.raises(PrivacyError, match="must be released before the promise and once"):
        ledger.pay_once(other, SIZE, (Charge(Size(20)),), 8)
    with pytest.raises(PrivacyError, match="promise before charging"):
        ledger.charge("client-1", 1, ())


def test_a_size_without_a_promise_counts_in_every_total(shards, tmp_path):
    """A budget that cannot be kept is refused after the size was paid: later runs on the same triples count it."""
    path = tmp_path / "ledger.jsonl"
    options = defended(noise=None, epsilon=1e-3, accountant="rdp", noise_seed=None)
    with pytest.raises(PrivacyError, match="cannot be kept"):
        client_defence(options, "client-0", shards[0], Ledger.open(path))
    alone = Ledger.read(path)
    assert alone.clients == ("client-0",)
    assert 0 < alone.spent("client-0") < 0.01
    later = Ledger.open(tmp_path / "later.jsonl")
    client_defence(defended(**SECRET), "client-0", shards[0], later)
    from fedkge.accounting.accountants import make_accountant  # noqa: PLC0415

    total = spending_over_runs([later, alone], 1e-5, make_accountant("pld"))["client-0"]
    assert len(total.spending.charges) == 2
    assert total.unsure == ()
    assert overwritten_runs(later, [path])["client-0"].runs == 1


def test_noise_is_calibrated_to_what_the_size_leaves(shards):
    for options in ({}, {"defence": "recommended", "noise": None, "epsilon": 8.0}):
        configuration = defended(**{**SECRET, **options})
        ledger = Ledger.in_memory()
        defence = client_defence(configuration, "client-0", shards[0], ledger)
        planned = defence.planned(configuration.training.rounds)
        assert Charge(size_event(configuration.privacy.epsilon)) in planned
        budget = configuration.privacy.epsilon
        assert 0.99 * budget < defence.accountant.epsilon(planned, 1e-5) <= budget
        public = configuration.updated(public_triples=defence.triples)
        free = client_defence(public, "other", shards[0], ledger)
        assert free.noise < defence.noise
        assert SIZE not in ledger.once("other")


def test_nothing_that_a_client_tells_is_its_exact_size(shards):
    client = client_of(shards[0], defended(**SECRET))
    told = size_in(client._plan.ledger)
    reply = client.handle(Fit(1, rows_of(client)))
    assert {client.triples, reply.triples, client.handle(Hello()).triples} == {told}


def test_graphs_of_different_size_with_the_same_noisy_one_promise_the_same(shards, monkeypatch):
    """All that is public of a defence follows from the released size: the steps, the noise, the shares."""
    whole = shards[0]
    less = replace(whole, train=whole.train[:-1])
    facts = []
    for options in ({}, {"defence": "recommended", "noise": None, "epsilon": 8.0}):
        for shard, drawn in ((whole, 4), (less, 5)):
            monkeypatch.setattr("fedkge.mechanisms.size.two_sided", lambda *_, drawn=drawn: np.array([drawn]))
            configuration = defended(**{**SECRET, **options})
            promise = client_defence(configuration, "client-0", shard, Ledger.in_memory()).promise("c")
            facts.append(replace(promise, facts=structs.replace(promise.facts, data="")))
    assert facts[0] == facts[1] != facts[2] == facts[3]


def test_under_a_research_seed_the_size_has_a_stream_of_its_own(shards):
    configuration = defended()
    noisy = [client_defence(configuration, "client-0", shards[0], Ledger.in_memory(), n).triples for n in (0, 0, 1, 2)]
    assert noisy[0] == noisy[1]
    assert len(set(noisy)) == 3
    uploads = []
    for options in (configuration, configuration.updated(public_triples=noisy[0])):
        client = client_of(shards[0], options)
        uploads.append(client.handle(Fit(1, rows_of(client))).rows["entities"])
    np.testing.assert_array_equal(*uploads, err_msg="drawing a size moves no other draw")


def test_a_run_takes_the_sizes_that_its_budget_was_tried_with(shards, tmp_path, monkeypatch):
    drawn, true = [], advance.noisy_size
    monkeypatch.setattr(advance, "noisy_size", lambda *all: drawn.append(true(*all)) or drawn[-1])
    run = start(defended(**SECRET, rounds=1), shards.graphs, tmp_path / "run")
    again = resume(tmp_path / "run", data=shards)
    assert [size_in(run.ledger, name) for name in run.clients] == drawn
    assert [size_in(again.ledger, name) for name in run.clients] == drawn
    assert len(drawn) == 3


def test_a_preview_draws_nothing_and_writes_nothing(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(advance, "noisy_size", lambda *_: pytest.fail("a preview must not draw"))
    ledger = Ledger.in_memory()
    assume_exact_size(defended(**SECRET), "client-0", shards[0], ledger)
    defence = client_defence(defended(**SECRET), "client-0", shards[0], ledger)
    assert defence.triples == len(shards[0].train)
    on_disk = Ledger.open(tmp_path / "ledger.jsonl")
    assume_exact_size(defended(**SECRET), "client-0", shards[0], on_disk)
    assert on_disk.clients == ()


def test_an_old_run_keeps_the_size_of_its_promise(shards):
    ledger = Ledger.in_memory()
    made = client_defence(defended(public_triples=123), "client-0", shards[0], ledger)
    plan = ClientPlan(defended(), 5, 0, ("entities",), ledger=ledger)
    assert Client("client-0", shards[0], plan).triples == made.triples == 123
