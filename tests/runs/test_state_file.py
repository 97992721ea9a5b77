"""A state counts from the moment at which the ledger lets it go, whatever is killed and whatever is put back."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError, RunError
from fedkge.federation.messages import Fit, Share, Upload
from fedkge.store.durable_files import beside
from tests.defences.test_copied import copied
from tests.defences.test_defence import client_of, defended, killed, rows_of

STEPS, COPY = defended(noise_seed=None), copied(noise_seed=None)
BEFORE, BETWEEN, AFTER = (
    "fedkge.runs.state_file.write_tensors_beside",
    "fedkge.accounting.ledger.Ledger.release",
    "fedkge.runs.state_file.put_in_place",
)
"""The line of the ledger, and what is done before and after it."""


def no_space(*_):
    raise OSError(28, "No space left on device")


def paid(ledger):
    """By round, whether anything was charged for it."""
    return [(entry.round, bool(entry.charges)) for entry in ledger.by_round("client-0")]


@pytest.mark.parametrize(
    ("moment", "kept", "charged"),
    [
        ("fedkge.defences.noisy_steps.rounds.NoisyRounds.train", 0, [True, False, True]),
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
    with pytest.raises(PrivacyError, match="the round stopped and was drawn again"):
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


def test_a_state_beside_does_not_replace_a_newer_one(shards, tmp_path):
    file, ledger = tmp_path / "client-0.safetensors", Ledger.in_memory()
    client = client_of(shards[0], STEPS, ledger, tmp_path)
    client.handle(Fit(1, rows_of(client)))
    shutil.copy(file, tmp_path / "backup")
    client.handle(Fit(2, rows_of(client)))
    shutil.copy(tmp_path / "backup", beside(file))
    assert client_of(shards[0], STEPS, ledger, tmp_path).round == 2


def test_a_released_state_that_could_not_be_put_in_place_is_not_lost(shards, tmp_path, monkeypatch):
    ledger = Ledger.in_memory()
    client = client_of(shards[0], COPY, ledger, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", no_space)
        with pytest.raises(RunError, match="could not be written"):
            client.handle(Fit(1, rows_of(client)))
    again = client_of(shards[0], COPY, ledger, tmp_path)
    assert again.released is not None
    assert isinstance(again.handle(Fit(2, rows_of(again))), Upload)


def test_half_a_file_beside_is_removed(shards, tmp_path):
    litter = beside(tmp_path / "client-0.safetensors")
    litter.write_bytes(b"half")
    client_of(shards[0], STEPS, Ledger.in_memory(), tmp_path)
    assert not litter.exists()


@pytest.mark.parametrize("options", [STEPS, COPY], ids=["steps", "copy"])
def test_a_round_that_could_not_be_kept_leaves_no_trace(shards, tmp_path, monkeypatch, options):
    """Not even in rows that the server sent: it may share fewer of them from now on, and the others would be left."""
    ledger = Ledger.in_memory()
    client = client_of(shards[0], options, ledger, tmp_path)
    before = [table.copy() for table in client._tables.all().values()]
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", no_space)
        with pytest.raises(RunError, match="No space"):
            client.handle(Fit(1, rows_of(client)))
    assert (client.released, client.round) == (None, 0)
    for table, old in zip(client._tables.all().values(), before, strict=True):
        np.testing.assert_array_equal(table, old)
    client.handle(Share({"entities": np.arange(3)}))
    assert isinstance(client.handle(Fit(2, {"entities": before[0][:3]})), Upload)
    assert paid(ledger) == [(1, True), (2, False)]


@pytest.mark.parametrize("how", ["killed", "not written"])
def test_a_copy_that_was_not_released_is_shown_to_nobody(shards, tmp_path, monkeypatch, how):
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    client = client_of(shards[0], COPY, ledger, tmp_path)
    if how == "killed":
        killed(client, monkeypatch, BETWEEN)
    else:
        write = Ledger._write

        def full(self, line):
            if b'"release"' in line:
                raise PrivacyError("no space for the line")
            write(self, line)

        monkeypatch.setattr(Ledger, "_write", full)
        with pytest.raises(PrivacyError, match="no space for the line"):
            client.handle(Fit(1, rows_of(client)))
    assert client.released is None


def test_a_client_that_could_not_undo_a_round_answers_no_more(shards, monkeypatch):
    """What others may see of it is undone all the same."""
    client = client_of(shards[0], STEPS, Ledger.in_memory())
    request, relations = Fit(1, rows_of(client)), client.unshared()["relations"]

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr("fedkge.federation.client.Client._commit", broken)
    monkeypatch.setattr("fedkge.federation.client.Client._new_trainer", broken)
    with pytest.raises(MemoryError):
        client.handle(request)
    monkeypatch.undo()
    with pytest.raises(RunError, match="could not be undone"):
        client.handle(request)
    np.testing.assert_array_equal(client.unshared()["relations"], relations)
    np.testing.assert_array_equal(client.embedding.tables.entities, request.rows["entities"])


@pytest.mark.parametrize("options", [defended(optimiser="adam", optimiser_state="kept"), copied()])
def test_a_round_that_broke_off_in_the_middle_is_trained_as_if_it_had_not(shards, options):
    """Nothing of the first attempt is left in optimisers, sums or counters; the noise has a seed."""

    def interrupted(_):
        raise KeyboardInterrupt

    whole, broken = (client_of(shards[0], options) for _ in range(2))
    for number in (1, 2, 3):
        request = Fit(number, rows_of(whole))
        upload = whole.handle(request)
        advance, broken._advance = broken._advance, interrupted
        with pytest.raises(KeyboardInterrupt):
            broken.handle(request)
        broken._advance = advance
        np.testing.assert_array_equal(broken.handle(request).rows["entities"], upload.rows["entities"])
        tensors, facts = broken._record()
        assert facts == whole._record()[1]
        for name, array in whole._record()[0].items():
            np.testing.assert_array_equal(tensors[name], array, err_msg=name)


def test_what_another_process_has_released_is_not_taken_for_paid(shards, tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    killed(client_of(shards[0], STEPS, Ledger.open(path)), monkeypatch, BETWEEN)
    clients = [client_of(shards[0], STEPS, Ledger.open(path)) for _ in range(2)]
    assert isinstance(clients[0].handle(Fit(1, rows_of(clients[0]))), Upload)
    monkeypatch.setattr("fedkge.defences.noisy_steps.rounds.NoisyRounds.train", lambda *_: pytest.fail("it has drawn"))
    with pytest.raises(PrivacyError, match="another process writes to it"):
        clients[1].handle(Fit(1, rows_of(clients[1])))


def test_a_ledger_that_broke_off_within_a_line_writes_no_more_and_is_whole_on_disk(shards, tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    client = client_of(shards[0], STEPS, Ledger.open(path), tmp_path)
    believe = Ledger._apply

    def interrupted(self, record):
        if record["kind"] == "release":
            raise KeyboardInterrupt
        believe(self, record)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.handle(Fit(1, rows_of(client)))
    with pytest.raises(PrivacyError, match="Nothing was released"):
        client.handle(Fit(1, rows_of(client)))
    again = client_of(shards[0], STEPS, Ledger.open(path), tmp_path)
    assert (again.round, paid(again._plan.ledger)) == (1, [(1, True)])
