"""The ledger never holds less than what it returned for: rules, damage, threads."""

from __future__ import annotations

import json
import threading

import pytest

from fedkge.accounting.accountants import make_accountant, merged
from fedkge.accounting.facts import Facts
from fedkge.accounting.ledger import Entry, Ledger
from fedkge.accounting.ledger_lines import sealed
from fedkge.accounting.promises import Promise
from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import Charge, Gaussian, SampledGaussian, SampledTest
from tests.accounting.complete import FACTS, FILTERED
from tests.machines import another_machine

STEP = SampledGaussian(rate=0.05, multiplier=1)
ROUND = (Charge(STEP, 10),)


def promise(client="client-0", **changes):
    return Promise(client, **{"delta": 1e-5, "epsilon": 8.0, "accountant": "rdp", "largest_round": ROUND, **changes})


@pytest.fixture(params=["disk", "memory"])
def ledger(request, tmp_path):
    made = Ledger.open(tmp_path / "ledger.jsonl") if request.param == "disk" else Ledger.in_memory()
    made.promise(promise())
    return made


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_round_is_paid_once_before_it_leaves_and_again_after(ledger):
    ledger.charge("client-0", 1, ROUND)
    ledger.charge("client-0", 1, ROUND)
    assert ledger.charges("client-0") == ROUND
    ledger.release("client-0", 1)
    ledger.release("client-0", 1)
    assert ledger.by_round("client-0") == (Entry(1, ROUND, released=True),)
    ledger.charge("client-0", 1, ROUND)
    assert ledger.charges("client-0") == (Charge(STEP, 20),)
    ledger.charge("client-0", 1, ROUND)
    ledger.release("client-0", 1)
    assert ledger.charges("client-0") == (Charge(STEP, 20),)


def test_a_round_that_leaves_takes_with_it_what_was_paid_before(ledger):
    for number in (1, 2):
        ledger.charge("client-0", number, ROUND)
    ledger.release("client-0", 2)
    assert ledger.by_round("client-0") == (Entry(1, ROUND, released=True), Entry(2, ROUND, released=True))
    assert not ledger.is_paid("client-0", 1, ROUND)
    ledger.release("client-0", 1)
    ledger.charge("client-0", 1, ROUND)
    assert ledger.charges("client-0") == (Charge(STEP, 30),)
    if ledger.path:
        assert Ledger.read(ledger.path).by_round("client-0") == ledger.by_round("client-0")


def test_what_is_prepaid(ledger):
    ledger.charge("client-0", 2, ROUND)
    assert ledger.is_prepaid("client-0", ROUND)
    assert not ledger.is_prepaid("client-0", [Charge(STEP, 11)])
    ledger.charge("client-0", 3, ())
    assert ledger.is_prepaid("client-0", ROUND)
    ledger.release("client-0", 3)
    assert not ledger.is_prepaid("client-0", ROUND), "it has left"


def test_a_release_names_the_state_that_it_lets_go(ledger):
    ledger.charge("client-0", 1, ROUND)
    for state in ("a", "a", "b"):  # a round may keep its state more than once
        ledger.release("client-0", 1, state)
    assert [ledger.has_released("client-0", state) for state in "abc"] == [True, True, False]
    assert ledger.by_round("client-0") == (Entry(1, ROUND, released=True),)
    if ledger.path:
        assert [line["state"] for line in lines_of(ledger.path) if line["kind"] == "release"] == ["a", "b"]
        assert Ledger.read(ledger.path).has_released("client-0", "b")


def test_a_round_that_changes_before_it_leaves_is_paid_twice(ledger):
    ledger.charge("client-0", 1, ROUND)
    ledger.charge("client-0", 1, [Charge(STEP, 4)])
    assert ledger.charges("client-0") == (Charge(STEP, 14),)


def test_what_is_not_in_order_is_refused(ledger):
    with pytest.raises(PrivacyError, match="never charged"):
        ledger.release("client-0", 1)
    with pytest.raises(PrivacyError, match="has no promise"):
        ledger.charge("client-1", 1, ROUND)
    with pytest.raises(PrivacyError, match="more than the largest round"):
        ledger.charge("client-0", 1, [Charge(STEP, 11)])
    with pytest.raises(PrivacyError, match="more than the largest round"):
        ledger.charge("client-0", 1, [Charge(Gaussian(100))])
    assert ledger.charges("client-0") == ()
    assert ledger.spent("client-0") == 0


def test_a_promise_is_kept(ledger):
    ledger.promise(promise())
    with pytest.raises(PrivacyError, match="a promise holds for the whole run"):
        ledger.promise(promise(epsilon=9))
    ledger.promise(promise("client-1", facts=FACTS))
    ledger.promise(promise("client-1", facts=Facts.of_record(FACTS.record())))
    assert ledger.clients == ("client-0", "client-1")
    assert ledger.promises["client-1"].facts.mechanism.batch == 64


def test_what_was_written_is_read_back(tmp_path):
    path = tmp_path / "new" / "ledger.jsonl"
    written = Ledger.open(path)
    for client in ("a", "b"):
        written.promise(promise(client, facts=Facts(data="é")))
        written.charge(client, 1, ROUND)
    written.release("a", 1)
    for read in (Ledger.open(path), Ledger.read(path)):
        assert read.promises == written.promises
        assert [read.by_round(client) for client in "ab"] == [written.by_round(client) for client in "ab"]
        assert read.spent("a") == written.spent("a") == make_accountant("rdp").epsilon(ROUND, 1e-5)
    again = Ledger.open(path)
    again.charge("b", 1, ROUND)
    again.charge("a", 1, ROUND)
    assert Ledger.read(path).charges("a") == (Charge(STEP, 20),)
    assert Ledger.read(path).charges("b") == ROUND


def test_a_filtered_run_has_spent_its_budget(ledger):
    ledger.promise(promise("client-1", facts=FILTERED))
    assert ledger.spent("client-1") == 0
    ledger.charge("client-1", 1, [Charge(STEP, 1)])
    assert ledger.spent("client-1") == 8


def test_every_kind_of_event_survives_the_disk(tmp_path):
    charges = (Charge(SampledTest(0.1, 1, 2, 3, 1e-7), 3), Charge(Gaussian(1 / 3)))
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    ledger.promise(promise(largest_round=charges))
    ledger.charge("client-0", 1, charges)
    assert Ledger.read(tmp_path / "ledger.jsonl").charges("client-0") == charges


def filled(path, rounds=3):
    ledger = Ledger.open(path)
    for client in ("a", "b"):
        ledger.promise(promise(client))
    for number in range(1, rounds + 1):
        for client in ("a", "b"):
            ledger.charge(client, number, [Charge(STEP, number)])
            ledger.release(client, number)
    return path.read_bytes()


def least(content: bytes, client: str) -> int:
    """Steps of the client in every line that has begun within `content`."""
    begun = content.splitlines()
    whole = [json.loads(line) for line in begun[: content.count(b"\n")]]
    steps = sum(
        charge["steps"]
        for line in whole
        if line["kind"] == "charge" and line["client"] == client
        for charge in line["charges"]
    )
    torn = bytes(begun[-1]) if len(begun) > content.count(b"\n") else b""
    return steps + (1 if torn and any(line.get("client") == client for line in whole) else 0)


def steps(ledger: Ledger, client: str) -> int:
    return sum(charge.steps for charge in ledger.charges(client)) if client in ledger.clients else 0


def check_truncation(folder, rounds, every):
    """What a torn line costs, where no witness is there to say that more was written."""
    content = filled(folder / "whole.jsonl", rounds)
    for end in range(len(content) + 1):
        with another_machine():
            check_part(folder / "torn.jsonl", content[:end], reopen=end % every == 0)


def check_part(path, part, reopen):
    path.write_bytes(part)
    looked = Ledger.read(path)
    expected = {}
    for client in looked.clients:
        torn = not part.endswith(b"\n")
        expected[client] = least(part, client) + (9 if torn else 0)
        assert steps(looked, client) == expected[client]
    if reopen:
        opened = Ledger.open(path)
        assert {client: steps(opened, client) for client in opened.clients} == expected
        assert {client: steps(Ledger.read(path), client) for client in opened.clients} == expected
        if "a" in opened.clients:
            opened.charge("a", 99, ROUND)
            assert steps(Ledger.open(path), "a") == expected["a"] + 10


def test_truncation_at_every_byte(tmp_path):
    check_truncation(tmp_path, rounds=1, every=101)


@pytest.mark.slow
def test_truncation_at_every_byte_of_a_longer_ledger(tmp_path):
    check_truncation(tmp_path, rounds=3, every=1)


def test_garbage_after_a_power_cut_is_a_torn_line(tmp_path):
    path = tmp_path / "ledger.jsonl"
    content = filled(path)
    for tail in (b"\0" * 100, b"\xff\xfe{", b"{}\n", b"[1]\n", b'{"kind": "charge"}\n', b"\n"):
        path.write_bytes(content + tail)
        with another_machine():
            assert steps(Ledger.open(path), "a") == 6 + 10
        assert lines_of(path)[-1]["kind"] == "torn"


def test_damage_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "ledger.jsonl"
    content = filled(path, rounds=1)
    lines = content.splitlines(keepends=True)
    damaged = [b"".join(lines[:i] + lines[i + 1 :]) for i in range(len(lines) - 2)]
    damaged += [content.replace(b'"steps": 1}', b'"steps": 0}', 1), content.replace(b'"steps": 1}', b'"steps": 1 }', 1)]
    damaged += [b"".join([*lines[:3], lines[2], *lines[3:]]), b"".join([lines[1], lines[0], *lines[2:]])]
    damaged += [content[: len(lines[0]) // 2] + content[len(lines[0]) :], b"\n" + content]
    for bad in damaged:
        path.write_bytes(bad)
        before = path.read_bytes()
        with pytest.raises(PrivacyError, match=r"ledger.jsonl:\d+: the ledger was changed or damaged"):
            Ledger.open(path)
        assert path.read_bytes() == before


def test_every_flipped_bit_is_seen_or_counted(tmp_path):
    path = tmp_path / "ledger.jsonl"
    content = filled(path, rounds=1)
    last = content.rindex(b"\n", 0, len(content) - 1)
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(PrivacyError):
            Ledger.read(path)
        with another_machine():
            if place <= last:
                with pytest.raises(PrivacyError):
                    Ledger.read(path)
            else:
                assert steps(Ledger.read(path), "a") == 11


def test_two_writers_are_noticed(tmp_path):
    path = tmp_path / "ledger.jsonl"
    first = Ledger.open(path)
    first.promise(promise())
    second = Ledger.open(path)
    second.charge("client-0", 1, ROUND)
    with pytest.raises(PrivacyError, match="another process"):
        first.charge("client-0", 2, ROUND)
    with pytest.raises(PrivacyError, match="opened for reading"):
        Ledger.read(path).charge("client-0", 2, ROUND)
    assert Ledger.read(path).charges("client-0") == ROUND


def test_a_failed_write_releases_nothing(tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.open(path)
    ledger.promise(promise())

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fedkge.accounting.ledger.os.fsync", full)
    with pytest.raises(PrivacyError, match="No space left"):
        ledger.charge("client-0", 1, ROUND)
    monkeypatch.undo()
    with pytest.raises(PrivacyError, match="could not be written"):
        ledger.charge("client-0", 1, ROUND)
    assert steps(Ledger.open(path), "client-0") >= 10


@pytest.mark.parametrize("written", [0, 1, 50])
def test_half_a_line_for_which_there_was_no_space_costs_nothing(tmp_path, monkeypatch, written):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.open(path)
    ledger.promise(promise())
    before, genuine = path.read_bytes(), type(path).open

    def full(self, mode="r", *arguments, **options):
        if mode == "ab":
            with genuine(self, mode) as file:
                file.write(b"{" * written)
            raise OSError(28, "No space left on device")
        return genuine(self, mode, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(type(path), "open", full)
        with pytest.raises(PrivacyError, match="No space left"):
            ledger.charge("client-0", 1, ROUND)
    assert path.read_bytes() == before
    with pytest.raises(PrivacyError, match="could not be written"):
        ledger.charge("client-0", 1, ROUND)
    assert steps(Ledger.open(path), "client-0") == 0


def test_a_missing_ledger_is_an_error_when_only_looked_at(tmp_path):
    with pytest.raises(PrivacyError, match="no such file"):
        Ledger.read(tmp_path / "ledger.jsonl")


def test_clients_in_threads(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.open(path)
    names = [f"client-{number}" for number in range(4)]

    def live(client):
        ledger.promise(promise(client))
        for number in range(1, 6):
            ledger.charge(client, number, ROUND)
            ledger.release(client, number)

    threads = [threading.Thread(target=live, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = Ledger.open(path)
    assert all(read.charges(name) == (Charge(STEP, 50),) for name in names)
    assert all(entry.released for name in names for entry in read.by_round(name))


def test_promises_say_what_is_wrong():
    with pytest.raises(Exception, match="delta"):
        promise(delta=0)
    with pytest.raises(Exception, match="did you mean pld"):
        promise(accountant="plb")
    with pytest.raises(Exception, match="above 0"):
        promise(epsilon=0)
    assert promise(largest_round=[*ROUND, *ROUND]).largest_round == merged([*ROUND, *ROUND])


def test_a_second_line_for_what_is_released_once_is_refused(tmp_path):
    """The later one would take the place of the earlier, and its charge with it."""
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    ledger.pay_once(promise(), "size", ROUND, 7)
    line = {"kind": "once", "what": "size", "charges": [], "value": 8, "promise": promise().record()}
    content, _ = sealed(line, ledger._chain._checksum)
    with (tmp_path / "ledger.jsonl").open("ab") as file:
        file.write(content)
    with pytest.raises(PrivacyError, match="the size of client-0 stands in an earlier line"):
        Ledger.read(tmp_path / "ledger.jsonl")


def test_a_line_that_cannot_be_written_is_the_reason_for_all_that_follow(tmp_path, monkeypatch):
    """Another client's thread may come next: it must hear why, not that somebody else writes."""
    ledger = Ledger.open(tmp_path / "ledger.jsonl")

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(PrivacyError, match="No space left"):
            ledger.promise(promise())
    with pytest.raises(PrivacyError, match=r"earlier line was not written: .*No space left"):
        ledger.promise(promise())
