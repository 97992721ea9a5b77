"""A ledger that is lost, cut or pushed aside must not make a client forget what it spent."""

from __future__ import annotations

import shutil

import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import PrivacyError
from fedkge.defences import parse
from fedkge.defences.budgeted import Budgeted
from fedkge.defences.planning import client_defence
from fedkge.federation.observer import Observer
from fedkge.runs.account import open_account
from fedkge.runs.directory import RunDirectory
from tests.defences.test_defence import client_of, defended
from tests.machines import another_machine


@pytest.fixture
def prolonged(shards, tmp_path):
    """A finished run of two rounds that may go on to the third."""
    start(defended(rounds=2), shards.graphs, tmp_path)
    config = tmp_path / "config.toml"
    config.write_text(config.read_text().replace("rounds = 2", "rounds = 3"))
    return tmp_path


def test_a_run_whose_ledger_is_gone_does_not_go_on(prolonged, shards):
    (prolonged / "ledger.jsonl").unlink()
    with pytest.raises(PrivacyError, match="got 0 lines"):
        resume(prolonged, data=shards)
    with another_machine():
        for _ in range(2):  # the second time there is a new, short ledger
            with pytest.raises(
                PrivacyError, match=r"client-0 has trained up to round 2.*ledger.jsonl has not released"
            ):
                resume(prolonged, data=shards)


def test_nor_does_one_whose_last_lines_were_cut_off(prolonged, shards):
    lines = (prolonged / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (prolonged / "ledger.jsonl").write_bytes(b"".join(lines[:-6]))  # all but the second round
    with pytest.raises(
        PrivacyError, match=f"the {len(lines)} lines last written on this machine, got {len(lines) - 6}"
    ):
        resume(prolonged, data=shards)
    with another_machine(), pytest.raises(PrivacyError, match="lines are missing"):
        resume(prolonged, data=shards)


def test_nor_does_one_whose_ledger_and_checkpoints_come_from_an_older_backup(prolonged, shards, tmp_path_factory):
    """All files fit together, so only a witness elsewhere can tell; it used to spend the third round twice."""
    backup = tmp_path_factory.mktemp("backup") / "run"
    shutil.copytree(prolonged, backup)
    spent = resume(prolonged, data=shards).epsilon()
    shutil.rmtree(prolonged)
    shutil.copytree(backup, prolonged)
    for way in (lambda: resume(prolonged, data=shards), lambda: open_run(prolonged, data=shards)):
        with pytest.raises(PrivacyError, match="restored from an older copy"):
            way()
    with another_machine():
        told = Told()
        assert resume(prolonged, data=shards, observer=told).epsilon() == spent
        assert "A rollback to an older copy before now is not noticed" in told.lines[0]
        assert resume(prolonged, data=shards, observer=told).epsilon() == spent
        assert len(told.lines) == 1


class Told(Observer):
    def __init__(self):
        self.lines = []

    def noticed(self, line):
        self.lines.append(line)


def test_nor_does_one_that_was_emptied_but_for_its_configuration(prolonged, shards):
    """As a backup from its very beginning would leave it."""
    for entry in prolonged.iterdir():
        if entry.name == "ledger.jsonl":
            entry.write_bytes(b"")
        elif entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name not in ("config.toml", "data.key"):
            entry.unlink()
    for way in (lambda: resume(prolonged, data=shards), lambda: open_account(prolonged)):
        with pytest.raises(PrivacyError, match="got 0 lines"):
            way()


def test_a_new_run_in_a_folder_that_was_removed_is_a_new_run(prolonged, shards):
    shutil.rmtree(prolonged)
    run = start(defended(rounds=1), shards.graphs, prolonged)
    assert [entry.round for entry in run.ledger.by_round("client-0")] == [1]


def test_with_its_ledger_it_does(prolonged, shards):
    run = resume(prolonged, data=shards)
    assert [entry.round for entry in run.ledger.by_round("client-0")] == [1, 2, 3]


def test_an_overwritten_ledger_never_lands_on_another_one(tmp_path):
    directory = RunDirectory(tmp_path)
    for text in "abc":
        directory.ledger.write_text(text)
        directory.remove()
    (tmp_path / "ledger-001.jsonl").unlink()
    for text in "de":
        directory.ledger.write_text(text)
        directory.remove()
    assert sorted(path.read_text() for path in directory.earlier_ledgers()) == ["b", "c", "d", "e"]


def test_a_selection_that_has_no_room_is_refused_before_anything_is_paid(shards):
    ledger, options = Ledger.in_memory(), {"selection": "ptr", "private_negatives": "public", "batch_size": 500}
    with pytest.raises(PrivacyError, match=r"expected a batch smaller than the .* entity rows"):
        client_of(shards[0], defended(**options), ledger)
    assert ledger.clients == ()


def test_validating_more_often_later_does_not_change_the_order_of_a_filter(shards):
    options = {
        "defence": "dp-flames-adaptive",
        "noise-schedule": "validation",
        "public-validation": "public.tsv",
        "epsilon": 8.0,
        "rounds": 60,
        "noise": 8.0,
        "noise-decay": 0.8,
        "public-triples": 20_000,
    }
    seldom, often = (parse({**options, "evaluate-every": every}) for every in (5, 1))
    ledger = Ledger.in_memory()
    promised = client_defence(seldom, "client-0", shards[0], ledger)
    again = client_defence(often, "client-0", shards[0], ledger)
    assert isinstance(again, Budgeted)
    assert again.planned(60) == promised.planned(60)
