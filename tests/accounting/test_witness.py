"""A ledger that was rolled back is noticed, one that crashed is not suspected, and the witness is its owner's alone."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.ledger_chain import Chain
from fedkge.accounting.ledger_lines import read_lines, sealed
from fedkge.accounting.witness import Witness, witness_folder
from fedkge.base.errors import PrivacyError
from tests.accounting.test_ledger import ROUND, promise, steps
from tests.machines import another_machine

ROLLED_BACK = "contains the {} lines last written on this machine, got {} lines"


def spend(ledger, *rounds):
    for number in rounds:
        ledger.charge("client-0", number, ROUND)
        ledger.release("client-0", number)


@pytest.fixture
def path(tmp_path):
    """A ledger of five lines: a promise and two rounds."""
    made = Ledger.open(tmp_path / "run" / "ledger.jsonl")
    made.promise(promise())
    spend(made, 1, 2)
    return tmp_path / "run" / "ledger.jsonl"


def both(path):
    """Every way to open a ledger."""
    return (lambda: Ledger.open(path), lambda: Ledger.read(path))


def test_an_older_copy_is_refused_by_writers_and_readers(path):
    older = path.read_bytes()
    spend(Ledger.open(path), 3)
    newest = path.read_bytes()
    path.write_bytes(older)
    for way in both(path):
        with pytest.raises(PrivacyError, match=ROLLED_BACK.format(7, 5)):
            way()
    path.write_bytes(newest)
    spend(Ledger.open(path), 4)
    assert steps(Ledger.read(path), "client-0") == 40


@pytest.mark.parametrize("kept", range(5))
def test_whole_lines_cut_off_the_end_are_noticed(path, kept):
    """Of an empty ledger the run is told by who opens it; here that is the run's config.toml."""
    run = Ledger.read(path)._chain.run
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    for way in (lambda: Ledger.open(path, run), lambda: Ledger.read(path, run)):
        with pytest.raises(PrivacyError, match=ROLLED_BACK.format(5, kept)):
            way()


def test_as_many_other_lines_are_no_substitute(path):
    """The number of lines alone proves nothing: a fork of the run has as many."""
    older = path.read_bytes()
    spend(Ledger.open(path), 3)
    path.write_bytes(older)
    with another_machine():
        fork = Ledger.open(path)
        fork.charge("client-0", 3, ROUND)
        fork.release("client-0", 3, "another state")
        fork.charge("client-0", 4, ROUND)
    for way in both(path):
        with pytest.raises(PrivacyError, match=ROLLED_BACK.format(7, 8)):
            way()


def test_a_moved_run_goes_on_and_its_copy_does_not(path, tmp_path):
    shutil.copytree(path.parent, tmp_path / "copy")
    moved = path.parent.rename(tmp_path / "moved") / "ledger.jsonl"
    spend(Ledger.open(moved), 3)
    assert steps(Ledger.read(moved), "client-0") == 30
    with pytest.raises(PrivacyError, match="copy of a run that continued elsewhere"):
        Ledger.open(tmp_path / "copy" / "ledger.jsonl")


def test_the_ledger_of_another_run_is_refused(path, tmp_path):
    other = Ledger.open(tmp_path / "other.jsonl")
    other.promise(promise())
    with pytest.raises(PrivacyError, match="belongs to another run"):
        Ledger.read(path, other._chain.run)


def test_without_a_witness_it_says_so_and_begins_a_new_one(path):
    older = path.read_bytes()
    assert Ledger.read(path).notice == ""
    with another_machine() as folder:
        assert "no witness of this ledger" in Ledger.read(path).notice
        assert not any(folder.iterdir()), "who only looks writes nothing"
        opened = Ledger.open(path)
        assert str(folder) in opened.notice
        spend(opened, 3)
        assert Ledger.read(path).notice == ""
        path.write_bytes(older)
        with pytest.raises(PrivacyError, match=ROLLED_BACK.format(7, 5)):
            Ledger.open(path)


def crash_after(calls, monkeypatch, ledger, number):
    """Break a round off after so many of the four durable writes that it takes: line, head, line, head."""
    done = []

    class CrashError(BaseException):
        pass

    def counted(genuine):
        def write(*arguments):
            if len(done) == calls:
                raise CrashError
            genuine(*arguments)
            done.append(genuine.__name__)

        return write

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_write", counted(Ledger._write))
        patched.setattr(Witness, "remember", counted(Witness.remember))
        with pytest.raises(CrashError):
            spend(ledger, number)
    return done


@pytest.mark.parametrize("calls", range(4))
def test_whatever_a_crash_comes_between_there_is_no_false_alarm_and_no_miss(path, monkeypatch, calls):
    before = path.read_bytes()
    done = crash_after(calls, monkeypatch, Ledger.open(path), 3)
    assert done == ["_write", "remember", "_write", "remember"][:calls], "the line comes first, then its witness"
    seen = Witness(witness_folder()).recall(Ledger.read(path)._chain.run)
    lines = len(path.read_bytes().splitlines())
    assert lines - 1 <= seen.lines <= lines, "behind by one line at most, and never ahead"
    for way in both(path):
        assert way().charges("client-0")[0].steps >= 20 + 10 * (calls > 0)
    if calls:  # the ledger was opened since, and what is in it is witnessed
        path.write_bytes(before)
        for way in both(path):
            with pytest.raises(PrivacyError, match="restored from an older copy"):
                way()


def test_the_head_is_on_the_disk_before_the_ledger_returns(path, monkeypatch):
    """Each line is synced, then its head; a file that was only written is not there after a power cut."""
    ledger, synced = Ledger.open(path), []
    genuine = os.fsync

    def sync(descriptor):
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).suffix)
        genuine(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    ledger.charge("client-0", 3, ROUND)
    assert synced == [".jsonl", ".heads"]


def test_a_run_that_goes_on_while_it_is_read_is_not_suspected(path, monkeypatch):
    """However many lines it writes while they are parsed: the witness was asked before."""
    writing, genuine = Ledger.open(path), Ledger._read

    def slow(ledger, content):
        spend(writing, len(writing.by_round("client-0")) + 1)
        return genuine(ledger, content)

    monkeypatch.setattr(Ledger, "_read", slow)
    for run in ("", writing._chain.run):
        assert Ledger.read(path, run).clients == ("client-0",)


def test_what_a_killed_process_has_not_synced_is_synced_before_it_is_believed(path, monkeypatch):
    """Killed between a write and its sync, a line is in the file and not on the disk: a later process pays nothing for
    it, so a power cut would forget what it paid for, and the witness would be ahead of the ledger.
    """
    synced, genuine = [], os.fsync

    def sync(descriptor):
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).suffix)
        genuine(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    Ledger.read(path)
    assert synced == [".jsonl"], "what is read may be told: a released size, a figure"
    synced.clear()
    Ledger.open(path)
    assert synced == [".jsonl", ".heads"]


@pytest.mark.parametrize("torn", [b"7 ab", b"7", b"\0\0\0\0", b"7 " + b"0" * 63])
def test_a_torn_head_is_passed_over_and_the_next_is_whole(path, torn):
    run = Ledger.read(path)._chain.run
    witness = Witness(witness_folder())
    with witness.path(run).open("ab") as file:
        file.write(torn)
    assert witness.recall(run).lines == 5
    spend(Ledger.open(path), 3)
    assert witness.recall(run).lines == 7


def test_a_first_head_that_was_torn_is_no_alarm(path):
    run = Ledger.read(path)._chain.run
    Witness(witness_folder()).path(run).write_bytes(b"1 abc")
    assert "no witness" in Ledger.open(path).notice
    assert Ledger.open(path).notice == ""


def test_a_damaged_witness_is_an_error_that_names_it(path):
    run = Ledger.read(path)._chain.run
    file = Witness(witness_folder()).path(run)
    file.write_bytes(b"nonsense\n")
    for way in both(path):
        with pytest.raises(PrivacyError, match=f"{file.name}: expected the heads of a privacy ledger"):
            way()


def test_witnesses_are_their_owners_alone(path):
    folder = witness_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())
    assert list(folder.iterdir())


def test_folders_that_are_made_for_them_are_too(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDKGE_STATE", str(tmp_path / "new" / "state"))
    Ledger.open(tmp_path / "ledger.jsonl").promise(promise())
    for folder in (tmp_path / "new", tmp_path / "new" / "state", tmp_path / "new" / "state" / "ledgers"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_run_that_goes_on_while_somebody_reads_is_no_alarm(path, monkeypatch):
    """Between the reader's look at the ledger and its look at the witness a line may be written."""
    writer, genuine, looks = Ledger.open(path), Witness.recall, []

    def recall(self, run):
        looks.append(run)
        if len(looks) == 1:
            spend(writer, 3)
        return genuine(self, run)

    monkeypatch.setattr(Witness, "recall", recall)
    assert steps(Ledger.read(path), "client-0") == 30


def test_a_state_folder_that_cannot_be_made_stops_before_anything_is_paid(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FEDKGE_STATE", str(tmp_path / "file"))
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    with pytest.raises(PrivacyError, match=r"witness .* could not be written .* set FEDKGE_STATE to a lasting folder"):
        ledger.promise(promise())
    with pytest.raises(PrivacyError):
        ledger.charge("client-0", 1, ROUND)


def test_the_folder_is_the_users_own_unless_a_variable_names_one(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDKGE_STATE", str(tmp_path))
    assert witness_folder() == tmp_path / "ledgers"
    monkeypatch.delenv("FEDKGE_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert witness_folder() == tmp_path / "xdg" / "fedkge" / "ledgers"


def test_a_ledger_of_an_early_version_is_read_and_named_by_its_next_line(path):
    chain, content = Chain(), b""
    for record, _, _ in read_lines(path.read_bytes(), "ledger"):
        line, checksum = sealed({k: v for k, v in record.items() if k not in ("run", "nonce")}, chain._checksum)
        chain._checksums.append(checksum)
        content += line
    path.write_bytes(content)
    assert steps(Ledger.read(path), "client-0") == 20
    spend(Ledger.open(path), 3)
    assert Ledger.read(path).notice == ""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(PrivacyError, match=ROLLED_BACK.format(7, 6)):
        Ledger.read(path)


def test_marks_are_random_and_say_which_lines_are_there(path):
    ledger = Ledger.open(path)
    mark = ledger.mark
    assert ledger.has_mark(mark)
    assert ledger.releases == 2
    spend(ledger, 3)
    assert ledger.has_mark(mark)
    assert ledger.mark != mark
    twin = Ledger.in_memory()
    twin.promise(promise())
    spend(twin, 1, 2)
    assert not twin.has_mark(mark), "the same lines have other numbers"


@pytest.mark.parametrize("bad", [{"run": "../../escape"}, {"run": 5}, {"nonce": "x"}, {"nonce": None}])
def test_an_identity_that_is_none_is_damage(path, bad):
    chain = Chain()
    with pytest.raises(ValueError, match="not what fedkge writes"):
        chain.take({"kind": "torn", **bad}, "0" * 64)
