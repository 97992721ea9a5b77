"""A ledger that is lost, cut or pushed aside must not make a client forget what it spent."""

from __future__ import annotations

import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.configuration import parse
from fedkge.errors import PrivacyError
from fedkge.federation.defence import Defence, defence_of
from fedkge.federation.run import RunDirectory
from fedkge.runs import resume, start
from tests.federation.test_defence import client_of, defended


@pytest.fixture
def prolonged(shards, tmp_path):
    """A finished run of two rounds that may go on to the third."""
    start(defended(rounds=2), shards.graphs, tmp_path)
    config = tmp_path / "config.toml"
    config.write_text(config.read_text().replace("rounds = 2", "rounds = 3"))
    return tmp_path


def test_a_run_whose_ledger_is_gone_does_not_go_on(prolonged, shards):
    (prolonged / "ledger.jsonl").unlink()
    for _ in range(2):  # the second time there is a new, short ledger
        with pytest.raises(PrivacyError, match=r"client-0 has trained up to round 2.*ledger.jsonl knows nothing"):
            resume(prolonged, data=shards)


def test_nor_does_one_whose_last_lines_were_cut_off(prolonged, shards):
    lines = (prolonged / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (prolonged / "ledger.jsonl").write_bytes(b"".join(lines[: 3 + 6]))  # promises and the first round
    with pytest.raises(PrivacyError, match="lines are missing"):
        resume(prolonged, data=shards)


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
    promised = defence_of(seldom, "client-0", shards[0], ledger)
    again = defence_of(often, "client-0", shards[0], ledger)
    assert isinstance(again, Defence)
    assert again.planned(60) == promised.planned(60)
