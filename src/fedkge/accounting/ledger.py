"""What every client has spent, written down before it is spent.

A ledger is one file of JSON lines that only grows. Each line carries a checksum of itself and of the line before, so
that damage is seen; each charge is on the disk before `charge` returns, and each release before the upload leaves.
The order of a client's round is: `charge`, draw the noise, write the state beside the last one, `release` it, put it in
its place, upload. So what was charged and not released is in no state that anybody could go on from.

Guarantees: after a crash at any moment the ledger that is read back holds at least every charge that `charge` has
returned for. (Who can write the file can also cut whole lines off its end; the checksums are against accidents.)
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from fedkge.accounting.accountants import make_accountant, merged
from fedkge.accounting.extras import Extra
from fedkge.accounting.ledger_lines import damage, read_lines, sealed
from fedkge.accounting.promises import Promise, covers
from fedkge.errors import PrivacyError
from fedkge.federation.storage import make_folder, write_atomically
from fedkge.mechanisms.events import Charge

Charges: TypeAlias = tuple[Charge, ...]

__all__ = ["FILE_NAME", "FILTERED", "Charges", "Entry", "Ledger", "Promise"]

FILE_NAME = "ledger.jsonl"
FILTERED = "filter"
"""The fact of a promise whose noise was chosen from what was seen: only the whole budget is then a guarantee."""


@dataclass(frozen=True)
class Entry:
    """One charge: the round it paid for (None for a torn line), and whether that round's upload was let go."""

    round: int | None
    charges: Charges
    released: bool = False


@dataclass
class _Account:
    """What one client has promised and spent, in the order of the lines."""

    promise: Promise
    entries: list[Entry] = field(default_factory=list)
    unreleased: dict[int, int] = field(default_factory=dict)
    """Round to the place of its newest entry that was not released."""
    states: set[str] = field(default_factory=set)
    """Fingerprints of the states that were released."""
    extras: list[Extra] = field(default_factory=list)
    """Releases beyond the rounds."""

    def charged(self, round: int, charges: Charges) -> bool:  # noqa: A002
        """Whether this round is paid for and has not left."""
        place = self.unreleased.get(round)
        return place is not None and self.entries[place].charges == charges

    def released(self, round: int) -> bool:  # noqa: A002
        """Whether this round was paid for and has left, and waits for nothing."""
        return round not in self.unreleased and any(entry.round == round for entry in self.entries)

    def release(self) -> None:
        """Let all that is paid for go: a later round may have drawn for what an earlier one paid."""
        for place in self.unreleased.values():
            self.entries[place] = replace(self.entries[place], released=True)
        self.unreleased.clear()


class Ledger:
    """The durable account of a run. Every method may be called by several threads.

    >>> from fedkge.mechanisms.events import SampledGaussian
    >>> charges = (Charge(SampledGaussian(rate=0.05, multiplier=1), steps=100),)
    >>> ledger = Ledger.in_memory()
    >>> ledger.promise(Promise("client-0", delta=1e-5, epsilon=8, largest_round=charges))
    >>> ledger.charge("client-0", 1, charges); ledger.release("client-0", 1)
    >>> ledger.charges("client-0") == charges, round(ledger.spent("client-0"), 1)
    (True, 3.5)
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._accounts: dict[str, _Account] = {}
        self._checksum = ""
        self._size = 0
        self._failed = False
        self._lock = threading.RLock()

    @classmethod
    def in_memory(cls) -> Ledger:
        """A ledger for a run that keeps nothing on disk."""
        return cls(None)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger at `path`, ready to be written; a new one if there is none.

        A line that a crash tore is counted as one largest round of every client, and that count is written down.
        """
        ledger = cls(Path(path))
        if not ledger._file.exists():
            make_folder(ledger._file.parent)
            write_atomically(ledger._file, b"")
        content = ledger._file.read_bytes()
        whole = ledger._read(content)
        if whole < len(content):
            line, checksum = sealed(_torn(len(content) - whole), ledger._checksum)
            write_atomically(ledger._file, content[:whole], line)
            ledger._checksum, ledger._size = checksum, whole + len(line)
        return ledger

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger at `path` as it stands, to look at: nothing is written, a torn line is counted all the same."""
        ledger = cls(Path(path))
        if not ledger._file.is_file():
            raise PrivacyError(f"{path}: expected a privacy ledger, found no such file; was the run trained privately?")
        ledger._read(ledger._file.read_bytes())
        ledger._failed = True
        return ledger

    @property
    def _file(self) -> Path:
        assert self.path is not None  # noqa: S101 (only ledgers on disk are read)
        return self.path

    @property
    def clients(self) -> tuple[str, ...]:
        """Who has promised, in the order of the promises."""
        with self._lock:
            return tuple(self._accounts)

    @property
    def promises(self) -> Mapping[str, Promise]:
        """What each client promised."""
        with self._lock:
            return {name: account.promise for name, account in self._accounts.items()}

    def promise(self, promise: Promise) -> None:
        """Write down what a client promises, before its first charge; the same promise again changes nothing."""
        with self._lock:
            account = self._accounts.get(promise.client)
            if account is not None and account.promise == promise:
                return
            if account is not None:
                raise PrivacyError(
                    f"{self._name}: {promise.client} promised {account.promise.summary}, got {promise.summary}; a "
                    "promise holds for the whole run: keep it, or start a new run: `fedkge account` adds the two up"
                )
            self._append({"kind": "promise", **promise.record()})

    def charge(self, client: str, round: int, charges: Sequence[Charge]) -> None:  # noqa: A002
        """Write down what a round is about to spend; it is on the disk when this returns.

        A round that is already paid for, and has not left, is not paid twice. One that has left is: training it
        again (from an older checkpoint) draws new noise over the same triples, and that is a new release.
        """
        spent = merged(charges)
        with self._lock:
            account = self._account(client)
            if not covers(account.promise.largest_round, spent):
                raise PrivacyError(
                    f"{self._name}: round {round} of {client} would spend {_words(spent)}, more than the largest "
                    f"round that was promised, {_words(account.promise.largest_round)}; promise that much"
                )
            if not account.charged(round, spent):
                records = [charge.record() for charge in spent]
                self._append({"kind": "charge", "client": client, "round": round, "charges": records})
            else:
                self._check_alone()

    def is_paid(self, client: str, round: int, charges: Sequence[Charge]) -> bool:  # noqa: A002
        """Whether exactly this is charged for the round, and has not left: then it may be trained without paying."""
        with self._lock:
            return self._account(client).charged(round, merged(charges))

    def is_prepaid(self, client: str, charges: Sequence[Charge]) -> bool:
        """Whether some round is charged with exactly this, and nothing was released since.

        That round was broken off, and what it drew is gone: a later one may draw for what was paid.
        """
        spent = merged(charges)
        with self._lock:
            account = self._account(client)
            return any(account.charged(number, spent) for number in account.unreleased)

    def release(self, client: str, round: int, state: str = "") -> None:  # noqa: A002
        """Mark that what this round drew may leave, in the state with this fingerprint; in none, if the round failed
        and others hear of it.

        Every round that was charged before counts as released with it: it may have paid for what leaves.
        """
        with self._lock:
            account = self._account(client)
            if round in account.unreleased or (account.released(round) and state and state not in account.states):
                self._append({"kind": "release", "client": client, "round": round, "state": state})
            elif not account.released(round):
                raise PrivacyError(
                    f"{self._name}: round {round} of {client} was never charged, so it must not leave; charge it first"
                )

    def charge_extra(self, client: str, extra: Extra) -> None:
        """Promise and charge a release beyond the rounds; it is on the disk when this returns.

        One of this name that is charged and not kept was seen by nobody, and is not charged again.
        """
        with self._lock:
            found = [each for each in self._account(client).extras if each.name == extra.name]
            if not found:
                self._append(extra.record(client))
            elif found[0] != replace(extra, value=None):
                raise PrivacyError(f"{self._name}: {client} has {extra.name!r} already, kept or at another price")
            else:
                self._check_alone()

    def keep_extra(self, client: str, name: str, value: Mapping[str, int]) -> None:
        """Write down what a charged release drew, before anybody sees it."""
        with self._lock:
            if not any(each.name == name and each.value is None for each in self._account(client).extras):
                raise PrivacyError(f"{self._name}: {name!r} of {client} was never charged, or is kept already")
            self._append({"kind": "extra-value", "client": client, "name": name, "value": dict(value)})

    def extras(self, client: str) -> tuple[Extra, ...]:
        """The client's releases beyond the rounds, in the order they were charged."""
        with self._lock:
            return tuple(self._account(client).extras)

    def has_released(self, client: str, state: str) -> bool:
        """Whether this state was let go. One that was not must not be gone on from: its round may be drawn again."""
        with self._lock:
            return state in self._account(client).states

    def charges(self, client: str) -> Charges:
        """Everything that the client was charged, released or not, equal events together."""
        extras = (charge for extra in self.extras(client) for charge in extra.charges)
        return merged((*self.charges_of_rounds(client), *extras))

    def charges_of_rounds(self, client: str) -> Charges:
        """What its rounds were charged: this is held against the promised epsilon, which extras add to."""
        return merged(charge for entry in self.by_round(client) for charge in entry.charges)

    def by_round(self, client: str) -> tuple[Entry, ...]:
        """The client's charges one by one, in the order they were written."""
        with self._lock:
            return tuple(self._account(client).entries)

    def spent(self, client: str) -> float:
        """Epsilon of everything so far, at the promised delta and by the promised accountant.

        Where noise was chosen from what was seen, the running sum is no guarantee; the promised epsilon is.
        """
        promise = self._account(client).promise
        if promise.facts.get(FILTERED) and promise.epsilon is not None:
            return (promise.epsilon if self.charges_of_rounds(client) else 0.0) + self._extra_epsilon(client)
        return make_accountant(promise.accountant).epsilon(self.charges(client), promise.delta)

    def promised(self, client: str) -> float | None:
        """The epsilon that the client promises in all: for its rounds, and for every release beyond them."""
        epsilon = self._account(client).promise.epsilon
        return None if epsilon is None else epsilon + self._extra_epsilon(client)

    def _extra_epsilon(self, client: str) -> float:
        return math.fsum(extra.epsilon for extra in self.extras(client))

    @property
    def _name(self) -> str:
        return str(self.path or "privacy ledger")

    def _account(self, client: str) -> _Account:
        if client not in self._accounts:
            known = ", ".join(self._accounts) or "nobody"
            raise PrivacyError(f"{self._name}: {client} has promised nothing (known: {known}); promise before charging")
        return self._accounts[client]

    def _append(self, record: dict[str, Any]) -> None:
        """Write a line, sync it, and only then believe it; broken off in between, this ledger writes nothing more."""
        self._check_alone()
        line, checksum = sealed(record, self._checksum)
        self._failed = True
        if self.path is not None:
            self._write(line)
        self._checksum = checksum
        self._apply(record)
        self._failed = False

    def _write(self, line: bytes) -> None:
        try:
            with self._file.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise PrivacyError(
                f"{self._name}: could not be written ({error.strerror or error}), so nothing was released; "
                "free some space or make the folder writable, then `fedkge resume`"
            ) from error
        self._size += len(line)

    def _check_alone(self) -> None:
        """Another process may have charged, or released, what this one takes for paid."""
        size = self._size if self.path is None else _size_of(self.path)
        if self._failed or size != self._size:
            raise PrivacyError(
                f"{self._name}: it was opened to be read, an earlier line could not be written, or another "
                "process writes it too; nothing was released. Let one run write it, and open it again (`resume`)"
            )

    def _read(self, content: bytes) -> int:
        """Take in every whole line, and a torn one as what it may have cost; how many bytes were whole."""
        whole = 0
        for number, (record, checksum, end) in enumerate(read_lines(content, self._name), start=1):
            try:
                self._apply(record)
            except (KeyError, TypeError, ValueError, PrivacyError) as error:
                raise damage(self._name, number, f"it makes no sense ({error})") from error
            whole, self._checksum = end, checksum
        if whole < len(content):
            self._apply(_torn(len(content) - whole))
        self._size = whole
        return whole

    def _apply(self, record: Mapping[str, Any]) -> None:
        kind = record["kind"]
        if kind == "promise":
            promise = Promise.of_record(record)
            self._accounts[promise.client] = _Account(promise)
        elif kind == "torn":
            for account in self._accounts.values():
                account.entries.append(Entry(None, account.promise.largest_round))
        elif kind == "charge":
            account = self._account(record["client"])
            account.unreleased[record["round"]] = len(account.entries)
            charges = tuple(Charge.of_record(charge) for charge in record["charges"])
            account.entries.append(Entry(record["round"], charges))
        elif kind == "release":
            account = self._account(record["client"])
            if record["round"] not in account.unreleased and not account.released(record["round"]):
                raise ValueError(f"round {record['round']} was never charged")
            account.release()
            account.states.add(record.get("state", ""))
        elif kind == "extra":
            self._account(record["client"]).extras.append(Extra.of_record(record))
        elif kind == "extra-value":
            self._take_value(self._account(record["client"]).extras, record)
        else:
            raise ValueError(f"unknown kind {kind!r}")

    @staticmethod
    def _take_value(extras: list[Extra], record: Mapping[str, Any]) -> None:
        place = next((place for place, each in enumerate(extras) if each.name == record["name"]), None)
        if place is None or extras[place].value is not None:
            raise ValueError(f"{record['name']!r} was never charged, or has a value already")
        value = {str(key): int(number) for key, number in record["value"].items()}
        extras[place] = replace(extras[place], value=value)


def _size_of(path: Path) -> int:
    """-1 where it cannot be told."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _torn(length: int) -> dict[str, Any]:
    return {"kind": "torn", "bytes": length}


def _words(charges: Sequence[Charge]) -> str:
    return json.dumps([charge.record() for charge in charges])
