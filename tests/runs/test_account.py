"""Whoever reads what a run has spent makes the checks that `resume` makes: a ledger that was cut is refused."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fedkge
from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import PrivacyError, RunError
from fedkge.cli.app import app
from fedkge.experiments.claim import claim_of
from fedkge.report.gather import gather
from fedkge.runs import account
from fedkge.runs.account import continue_account, open_account
from fedkge.runs.directory import RunDirectory
from fedkge.runs.state_file import load_state
from fedkge.store.durable_files import beside, write_tensors_beside
from tests.federation.crash_runs import DEFENCES
from tests.machines import another_machine
from tests.short_runs import break_off, short

READERS = {
    "account": ["account", "RUN"],
    "account of the file": ["account", "RUN/ledger.jsonl"],
    "account, as JSON": ["account", "RUN", "--json"],
    "report": ["report", "RUN"],
    "compare": ["compare", "RUN", "RUN"],
    "audit": ["audit", "RUN"],
    "evaluate": ["evaluate", "RUN"],
    "export": ["export", "RUN"],
    "resume": ["resume", "RUN"],
}


@pytest.fixture(scope="module")
def finished(graph, tmp_path_factory):
    """A finished defended run of three clients and two rounds, on a file that commands find again."""
    folder = tmp_path_factory.mktemp("account")
    data, columns = folder / "graph", (graph.entities.names, graph.relations.names, graph.entities.names)
    data.mkdir()
    for split in ("train", "valid", "test"):
        rows = [[names[i] for names, i in zip(columns, row, strict=True)] for row in graph.split(split).tolist()]
        (data / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    options = {**DEFENCES["defended"], "data": str(data), "clients": 3, "rounds": 2, "evaluate_every": 0}
    start(short(**options), out=folder / "run")
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def cut(run, lines=1):
    """Take whole lines off the end of the ledger."""
    path = run / "ledger.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def invoke(arguments, run):
    return CliRunner().invoke(app, [part.replace("RUN", str(run)) for part in arguments])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("witness", [True, False], ids=["witness", "no witness"])
def test_every_command_refuses_a_ledger_that_was_cut(run, reader, witness):
    cut(run)
    if witness:
        done = invoke(READERS[reader], run)
    else:
        with another_machine():
            done = invoke(READERS[reader], run)
    assert done.exit_code == 8, done.output
    assert ("last written on this machine" if witness else "lines are missing") in done.output.replace("\n", " ")


@pytest.mark.parametrize("lines", range(1, 16))
def test_any_number_of_lines_is_missed_by_every_function(run, lines):
    """From the last line alone to all of them: three promises, and for each round and client a charge and a release."""
    cut(run, lines)
    with another_machine():
        for way in (open_account, gather, lambda path: continue_account(RunDirectory(path))):
            with pytest.raises(PrivacyError, match="lines are missing"):
                way(run)
        with pytest.raises(PrivacyError):
            claim_of(run, "client-0")
    with pytest.raises(PrivacyError, match="last written on this machine"):
        open_account(run)


@pytest.mark.parametrize("lines", [1, 2, 6, 12, 15])
def test_without_checkpoints_the_model_says_which_rounds_it_came_from(run, lines):
    shutil.rmtree(run / "checkpoints")
    with another_machine():
        assert open_account(run).clients == ("client-0", "client-1", "client-2")
        cut(run, lines)
        with pytest.raises(PrivacyError, match="it contains round 2 of client-"):
            open_account(run)


def test_a_whole_run_is_read_by_all(run):
    assert open_account(run).notice == ""
    for name, reader in READERS.items():
        done = invoke(reader, run)
        assert done.exit_code == 0 or (name == "audit" and "got a run without canaries" in done.output), done.output
    assert json.loads(invoke(READERS["account, as JSON"], run).stdout)["runs"][0]["clients"]["client-0"]["spent"] > 0


def test_a_ledger_that_is_missing_is_no_run_without_a_defence(run):
    (run / "ledger.jsonl").unlink()
    with another_machine():
        for way in (open_account, gather):
            with pytest.raises(PrivacyError, match="found no such file"):
                way(run)


def test_a_ledger_of_another_run_is_refused(run, graph, tmp_path):
    other = Ledger.open(tmp_path / "other.jsonl")
    for promise in Ledger.read(run / "ledger.jsonl").promises.values():
        other.promise(promise)
    shutil.copy(tmp_path / "other.jsonl", run / "ledger.jsonl")
    with pytest.raises(PrivacyError, match="belongs to another run"):
        open_account(run)


@pytest.fixture
def halved(shards, tmp_path):
    """A run that broke off after its first round: no model says anything yet."""
    run = tmp_path / "halved"
    break_off(short(**DEFENCES["defended"]), shards, run, rounds=1)
    before = run / "before"
    shutil.copytree(run / "checkpoints", before)
    return run


def continued(run, shards, monkeypatch):
    """The next round as a kill leaves it, before client-0's state is put in its place: it is still `beside`."""

    class KilledError(BaseException):
        pass

    def killed(*_):
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr("fedkge.runs.state_file.put_in_place", killed)
        with pytest.raises(KilledError):
            resume(run, data=shards)


def test_the_newest_state_may_be_beside_its_place(halved, shards, monkeypatch):
    """Such a state was charged, so a ledger without its charge was cut, whatever the older files say."""
    whole = (halved / "ledger.jsonl").read_bytes()
    continued(halved, shards, monkeypatch)
    assert beside(halved / "checkpoints" / "client-0.safetensors").exists()
    with another_machine():
        assert open_account(halved) is not None
        newest = (halved / "ledger.jsonl").read_bytes()
        (halved / "ledger.jsonl").write_bytes(whole)
        for way in (open_account, lambda path: continue_account(RunDirectory(path))):
            with pytest.raises(PrivacyError, match=r"client-\d has trained up to round 2"):
                way(halved)
    (halved / "ledger.jsonl").write_bytes(newest)
    assert resume(halved, data=shards).ledger is not None


def test_a_state_beside_that_a_crash_left_before_its_release_is_no_alarm(halved, shards, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "release", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            resume(halved, data=shards)
    assert beside(halved / "checkpoints" / "client-0.safetensors").exists()
    assert not all(entry.released for entry in open_account(halved).by_round("client-0"))
    beside(halved / "checkpoints" / "client-0.safetensors").write_bytes(b"torn")
    assert open_account(halved) is not None
    assert resume(halved, data=shards).ledger is not None


def test_a_run_that_goes_on_while_somebody_reads_is_no_alarm(halved, shards, monkeypatch):
    """Its states are looked at before its ledger, which knows all of them by then."""
    genuine, gone_on = account._states, []

    def states(folder):
        if not gone_on:
            gone_on.append(folder)
            resume(halved, data=shards)  # looks at the states itself
        return genuine(folder)

    monkeypatch.setattr(account, "_states", states)
    assert open_account(halved).by_round("client-0")[-1].round == 3


def test_a_damaged_state_is_an_error_since_nothing_can_be_checked(run):
    (run / "checkpoints" / "client-1.safetensors").write_bytes(b"damaged")
    with pytest.raises(RunError, match=r"client-1\.safetensors: expected a safetensors file"):
        open_account(run)


def test_a_run_without_a_defence_claims_nothing(shards, tmp_path):
    start(short(rounds=1), shards.graphs, tmp_path)
    assert open_account(tmp_path) is None
    assert open_run(tmp_path, data=shards).ledger is None
    assert claim_of(tmp_path, "client-0") is None
    done = invoke(["account", "RUN"], tmp_path)
    assert done.exit_code == 8
    assert "trained without a defence" in done.output


def test_nobody_reads_a_ledger_past_the_one_function():
    """`Ledger.read` and `Ledger.open` are for bare files, of which nothing but the witness can say more."""
    allowed = {"runs/account.py", "accounting/ledger.py", "accounting/overwritten.py", "api/ledgers.py"}
    root = Path(fedkge.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("read", "open") and isinstance(node.value, ast.Name):
                found |= {path.relative_to(root).as_posix()} if node.value.id == "Ledger" else set()
    assert found <= allowed


@pytest.mark.parametrize(("number", "refused"), [(2, False), (3, True)])
def test_a_state_beside_its_place_may_be_a_second_one_of_a_round_that_is_released(run, number, refused):
    """A copy is kept when it is drawn, and again when it was trained on: killed in between, nothing is waiting."""
    path = run / "checkpoints" / "client-0.safetensors"
    tensors, facts = load_state(path)
    write_tensors_beside(path, tensors, {**facts, "round": number, "steps": facts["steps"] + 1})
    if refused:
        with pytest.raises(PrivacyError, match="lines are missing"):
            open_account(run)
    else:
        assert open_account(run).clients
        continue_account(RunDirectory(run))
