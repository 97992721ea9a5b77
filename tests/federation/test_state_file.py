"""A state counts from the moment at which the ledger lets it go, whatever is killed and whatever is put back."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.errors import PrivacyError, RunError
from fedkge.federation.messages import Fit, Share, Upload
from fedkge.federation.storage import beside
from tests.federation.test_copied import copied
from tests.federation.test_defence import client_of, defended, rows_of

STEPS, COPY = defended(noise_seed=None), copied(noise_seed=None)
BEFORE, BETWEEN, AFTER = (
    "fedkge.federation.state_file.write_tensors_beside",
    "fedkge.accounting.ledger.Ledger.release",
    "fedkge.federation.state_file.put_in_place",
)
"""The line of the ledger, and what is done before and after it."""


def killed(client, monkeypatch, moment, number=1):
    """The client's round breaks off at this moment."""

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moment, kill)
        with pytest.raises(KeyboardInterrupt):
            client.handle(Fit(number, rows_of(client)))


def paid(ledger):
    """By round, whether anything was charged for it."""
    return [(entry.round, bool(entry.charges)) for entry in ledger.by_round("client-0")]


@pytest.mark.parametrize(
    ("moment", "kept", "charged"),
    [
        ("fedkge.federation.defended.DefendedRounds.train", 0, [True, False, True]),
        (BEFORE, 0, [True, False, True]),
        (BETWEEN, 0, [True, False, True]),
        (AFTER, 1, [True, True, True]),
    ],
)
def test_a_lost_round_pays_for_the_next_and_a_kept_one_does_not(shards, tmp_path, monkeypatch, moment, kept, charged):
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    killed(client_of(shards[0], STEPS, ledger, tmp_path), monkeypatch, moment)
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    client = client_of(shards[0], STEPS, ledger, tmp_path)
    assert client.round == kept
    for number in (2, 3):
        assert isinstance(client.handle(Fit(number, rows_of(client))), Upload)
    assert paid(ledger) == list(zip((1, 2, 3), charged, strict=True))
    assert all(entry.released for entry in ledger.by_round("client-0"))
    assert not beside(tmp_path / "client-0.safetensors").exists()


@pytest.mark.parametrize("number", [1, 2], ids=["the same round again", "a later round"])
@pytest.mark.parametrize("options", [STEPS, COPY], ids=["steps", "copy"])
def test_a_state_that_was_given_up_never_comes_back(shards, tmp_path, monkeypatch, options, number):
    """Another draw has left for what it paid, so it would be a second one for one charge."""
    file, backup = tmp_path / "client-0.safetensors", tmp_path / "backup"
    ledger = Ledger.in_memory()
    killed(client_of(shards[0], options, ledger, tmp_path), monkeypatch, BETWEEN)
    beside(file).rename(backup)
    client = client_of(shards[0], options, ledger, tmp_path)
    assert (client.round, client.released) == (0, None)
    assert isinstance(client.handle(Fit(number, rows_of(client))), Upload)
    shutil.copy(backup, beside(file))
    again = client_of(shards[0], options, ledger, tmp_path)
    assert (again.round, beside(file).exists()) == (number, False)
    np.testing.assert_array_equal(again.embedding.tables.relations, client.embedding.tables.relations)
    shutil.copy(backup, file)
    with pytest.raises(PrivacyError, match="broken off and drawn again"):
        client_of(shards[0], options, ledger, tmp_path)


def test_an_older_state_is_gone_on_from_and_its_round_paid_again(shards, tmp_path):
    file, ledger = tmp_path / "client-0.safetensors", Ledger.in_memory()
    client = client_of(shards[0], STEPS, ledger, tmp_path)
    for number in (1, 2):
        client.handle(Fit(number, rows_of(client)))
        shutil.copy(file, tmp_path / f"round-{number}")
    shutil.copy(tmp_path / "round-1", file)
    client = client_of(shards[0], STEPS, ledger, tmp_path)
    assert client.round == 1
    client.handle(Fit(2, rows_of(client)))
    assert paid(ledger) == [(1, True), (2, True), (2, True)]


def test_half_a_file_beside_is_removed(shards, tmp_path):
    litter = beside(tmp_path / "client-0.safetensors")
    litter.write_bytes(b"half")
    client_of(shards[0], STEPS, Ledger.in_memory(), tmp_path)
    assert not litter.exists()


def test_a_round_that_could_not_be_kept_leaves_no_trace(shards, tmp_path, monkeypatch):
    """Not even in rows that the server sent: it may share fewer of them from now on, and the others would be left."""
    client = client_of(shards[0], STEPS, Ledger.in_memory(), tmp_path)
    before = [table.copy() for table in client._tables().values()]

    def full(*_):
        raise RunError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(BEFORE, full)
        with pytest.raises(RunError, match="no space"):
            client.handle(Fit(1, rows_of(client)))
    for table, old in zip(client._tables().values(), before, strict=True):
        np.testing.assert_array_equal(table, old)
    client.handle(Share({"entities": np.arange(3)}))
    assert isinstance(client.handle(Fit(2, {"entities": before[0][:3]})), Upload)


def test_a_client_that_could_not_undo_a_round_answers_no_more(shards, monkeypatch):
    client = client_of(shards[0], STEPS, Ledger.in_memory())
    request = Fit(1, rows_of(client))

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr("fedkge.federation.client.Client._commit", broken)
    monkeypatch.setattr("fedkge.federation.client.Client._new_trainer", broken)
    with pytest.raises(MemoryError):
        client.handle(request)
    monkeypatch.undo()
    with pytest.raises(RunError, match="could not be undone"):
        client.handle(request)


def test_what_another_process_has_released_is_not_taken_for_paid(shards, tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    killed(client_of(shards[0], STEPS, Ledger.open(path)), monkeypatch, BETWEEN)
    clients = [client_of(shards[0], STEPS, Ledger.open(path)) for _ in range(2)]
    assert isinstance(clients[0].handle(Fit(1, rows_of(clients[0]))), Upload)
    before = clients[1].embedding.tables.relations.copy()
    with pytest.raises(PrivacyError, match="another process writes it too"):
        clients[1].handle(Fit(1, rows_of(clients[1])))
    np.testing.assert_array_equal(clients[1].embedding.tables.relations, before)
