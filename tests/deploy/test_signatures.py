"""A site's check of the server's signature: everything else is dropped, whatever it looks like."""

import itertools
import logging
import resource
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("nacl", reason="signed requests need PyNaCl")

from fedkge.base.errors import DataError, FedkgeError, RunError, UnavailableError
from fedkge.deploy import inbox as inbox_module
from fedkge.deploy.inbox import MOST_WAITING, Inbox, Refusals
from fedkge.deploy.keys import Key
from fedkge.deploy.request_keys import (
    PUBLIC_FILE,
    SIGNING_FILE,
    create_request_keys,
    fingerprint,
    read_public_key,
    read_signing_key,
)
from fedkge.deploy.request_numbers import FILE, NumberFile
from fedkge.deploy.signatures import SEAL_BYTES, Address, Opened, Refusal, Signer, Verifier, public_key

KEY = Key(bytes(range(1, 33)))
HERE = Address("study", "north", "job-1")
TOKEN = bytes(range(16))
CONTENT = b"train round 60"


def seal(number: int = 1, key: Key = KEY, address: Address = HERE, content: bytes = CONTENT) -> bytes:
    return Signer(key, address.federation, address.job, lambda: number).seal(address.site, TOKEN, content)[1]


def verifier(address: Address = HERE) -> Verifier:
    return Verifier(public_key(KEY), address)


def test_what_the_server_signed_is_opened() -> None:
    assert verifier().open(seal(7), CONTENT) == Opened(7, TOKEN.hex(), CONTENT)


@pytest.mark.parametrize(
    "address", [replace(HERE, site="south"), replace(HERE, federation="other"), replace(HERE, job="job-0")]
)
def test_a_request_for_another_site_federation_or_job_is_a_forgery(address: Address) -> None:
    assert verifier().open(seal(address=address), CONTENT) is Refusal.FORGED
    assert isinstance(verifier(address).open(seal(address=address), CONTENT), Opened)


def test_fields_do_not_run_into_each_other() -> None:
    assert verifier(Address("stud", "ynorth", "job-1")).open(seal(), CONTENT) is Refusal.FORGED
    assert verifier(Address("study", "northj", "ob-1")).open(seal(), CONTENT) is Refusal.FORGED


def test_another_key_is_a_forgery() -> None:
    assert verifier().open(seal(key=Key.fresh()), CONTENT) is Refusal.FORGED


@given(st.integers(0, 8 * SEAL_BYTES - 1))
def test_no_flipped_bit_of_a_seal_passes(bit: int) -> None:
    changed = bytearray(seal())
    changed[bit // 8] ^= 1 << bit % 8
    assert verifier().open(bytes(changed), CONTENT) is Refusal.FORGED


@given(st.binary(max_size=64).filter(lambda content: content != CONTENT))
def test_no_other_content_passes(content: bytes) -> None:
    assert verifier().open(seal(), content) is Refusal.CHANGED


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(max_size=300),
    st.binary(min_size=SEAL_BYTES, max_size=SEAL_BYTES),
    st.lists(st.binary(max_size=8), max_size=3),
    st.dictionaries(st.text(max_size=3), st.binary(max_size=8), max_size=3),
    st.sampled_from([bytearray(seal()), memoryview(seal()), seal()[:-1], seal() + b"\0"]),
)


@given(ANYTHING, ANYTHING)
def test_whatever_comes_is_refused_by_name(one: Any, other: Any) -> None:
    assert isinstance(verifier().open(one, other), Refusal)
    assert isinstance(verifier().open(one, CONTENT), Refusal)
    assert isinstance(verifier().open(seal(), other), Refusal)


def inbox(folder: Path) -> Inbox:
    return Inbox(verifier(), NumberFile(folder))


def test_a_request_that_comes_twice_is_acknowledged_twice_and_handled_once(tmp_path: Path) -> None:
    box = inbox(tmp_path)
    assert box.accept(seal(5), CONTENT)
    assert box.accept(seal(5), CONTENT)
    assert box.knows(5)
    box.close()
    assert box.take() == Opened(5, TOKEN.hex(), CONTENT)
    assert box.take() is None


def test_a_replay_is_dropped_in_this_job_and_in_a_later_process(tmp_path: Path) -> None:
    box = inbox(tmp_path)
    for number in (5, 6):
        assert box.accept(seal(number), CONTENT)
        box.take()
    assert not box.accept(seal(5), CONTENT)
    after = inbox(tmp_path)
    assert not after.accept(seal(6), CONTENT), "the number is on disk"
    assert not after.knows(6), "so that the server sends it under a new number"
    assert after.accept(seal(7), CONTENT)
    assert box.refusals.counts == after.refusals.counts == {Refusal.REPLAYED: 1}


def test_a_request_is_on_record_before_it_is_handed_out(tmp_path: Path) -> None:
    """A full disk: the request is not acted on, and the server is not told that it has arrived."""

    class Full(NumberFile):
        def _write(self, number: int) -> None:
            raise RunError(f"{number}: no space left")

    box = Inbox(verifier(), Full(tmp_path))
    with pytest.raises(RunError):
        box.accept(seal(1), CONTENT)
    box.close()
    assert box.take() is None


def test_few_requests_wait_and_the_next_is_not_lost(tmp_path: Path) -> None:
    box = inbox(tmp_path)
    for number in range(1, MOST_WAITING + 1):
        assert box.accept(seal(number), CONTENT)
    assert not box.accept(seal(9), CONTENT)
    box.take()
    assert box.accept(seal(9), CONTENT), "when the server tries again"
    assert box.refusals.counts == {Refusal.CROWDED: 1}


def test_a_flood_of_forgeries_leaves_nothing_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """100,000 forged requests, each different, and replays among them."""
    box, padding = inbox(tmp_path), bytes(1000)
    assert box.accept(seal(5), CONTENT)
    box.take()
    old, forged = seal(4), bytearray(seal(6, Key.fresh()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with caplog.at_level(logging.WARNING, "fedkge.site"):
        for number in range(100_000):
            forged[8:16] = number.to_bytes(8, "big")
            assert not box.accept(bytes(forged), padding + bytes(forged))
            assert number % 1000 or not box.accept(old, CONTENT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000, "kB; all of them are 110,000"
    assert box.refusals.counts == {Refusal.FORGED: 100_000, Refusal.REPLAYED: 100}
    assert len(caplog.records) < 20, "a log that anybody can fill is a flood too"
    box.close()
    assert box.take() is None
    assert inbox(tmp_path).accept(seal(6), CONTENT)


def test_refusals_are_counted_and_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    with caplog.at_level(logging.WARNING, "fedkge.site"):
        for _ in range(10):
            refusals.note(Refusal.FORGED)
        now[0] = inbox_module.SAY_SECONDS
        refusals.note(Refusal.FORGED)
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(" requests")[0] for line in said] == ["dropped 1", "dropped 11"]


def test_many_threads_hand_a_request_in_once(tmp_path: Path) -> None:
    box, one = inbox(tmp_path), seal(5)
    threads = [threading.Thread(target=box.accept, args=(one, CONTENT)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    box.close()
    assert box.take() is not None
    assert box.take() is None


def test_numbers_grow_when_the_clock_goes_back_and_when_the_file_is_lost(tmp_path: Path) -> None:
    clock = itertools.chain([100, 50, 50], itertools.repeat(300)).__next__
    numbers = NumberFile(tmp_path, clock)
    assert [numbers.next(), numbers.next()] == [100, 101]
    assert NumberFile(tmp_path, clock).next() == 102
    (tmp_path / FILE).unlink()
    assert NumberFile(tmp_path, clock).next() == 300


@pytest.mark.parametrize("text", ["", "x", "-1", "1 2", "\u0661", str(2**64), "9" * 5000])
def test_a_number_file_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=FILE):
        NumberFile(tmp_path)


def test_keys_are_made_in_pairs_and_the_secret_is_the_servers_alone(tmp_path: Path) -> None:
    server, north = tmp_path / "server", tmp_path / "north"
    for folder in (server, north):
        folder.mkdir()
    create_request_keys(server, [north])
    assert read_public_key(north) == read_public_key(server) == public_key(read_signing_key(server))
    assert (server / SIGNING_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in north.iterdir()] == [PUBLIC_FILE]
    assert fingerprint(read_public_key(north)) != fingerprint(bytes(32))


@pytest.mark.parametrize("read", [read_public_key, read_signing_key])
def test_a_kit_from_before_says_what_to_do(tmp_path: Path, read: Any) -> None:
    with pytest.raises(UnavailableError, match="fedkge federation init"):
        read(tmp_path)


@pytest.mark.parametrize("text", ["", "x", "fedkge-request-public-key-1", "fedkge-request-public-key-1 00", "a " * 9])
def test_a_public_key_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PUBLIC_FILE).write_text(text, encoding="ascii")
    with pytest.raises(DataError, match=PUBLIC_FILE):
        read_public_key(tmp_path)


def test_a_signing_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    create_request_keys(tmp_path, [])
    (tmp_path / SIGNING_FILE).chmod(0o644)
    with pytest.raises(FedkgeError, match="chmod 600"):
        read_signing_key(tmp_path)
