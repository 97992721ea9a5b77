"""What every client has spent, written down before it is spent.

A ledger is one file of JSON lines that only grows. Each line carries a checksum of itself and of the line before, so
that damage is seen; each charge is on the disk before `charge` returns, and each release before the upload leaves.
The order of a client's round is: `charge`, draw the noise, write the state beside the last one, `release` it, put it in
its place, upload. So what was charged and not released is in no state that anybody could go on from.

Guarantees: after a crash at any moment the ledger that is read back holds at least every charge that `charge` has
returned for. A ledger that was cut, or brought back from an older copy, is refused where the `Witness` of its last head
is there. (Who can write the file and the witness can write new ones: both are against accidents and backups.)
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedkge.accounting.accountants import make_accountant, merged
from fedkge.accounting.extras import Extra
from fedkge.accounting.facts import Payment
from fedkge.accounting.ledger_chain import Chain
from fedkge.accounting.ledger_entries import Charges, ClientEntries, Entry, Once
from fedkge.accounting.ledger_lines import NONCE, RUN, damage, read_lines, run_of
from fedkge.accounting.promises import Promise, covers
from fedkge.accounting.witness import Witness, witness_folder
from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import Charge
from fedkge.store.durable_files import make_folder, write_atomically

__all__ = ["FILE_NAME", "Charges", "Entry", "Ledger", "Once", "Promise"]

FILE_NAME = "ledger.jsonl"


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

    def __init__(self, path: Path | None, run: str = "", witness: Witness | None = None) -> None:
        self.path = path
        self.kept = path is not None
        """Whether its promises stand in a file, now or later."""
        self.notice = ""
        """What a person should know about this ledger; blank where there is nothing."""
        self._chain = Chain(run, witness)
        self._accounts: dict[str, ClientEntries] = {}
        self._releases = 0
        self._size = 0
        self._failed = False
        self._lock = threading.RLock()

    @classmethod
    def in_memory(cls, kept: bool = False) -> Ledger:
        """A ledger for a run that keeps nothing on disk; or, `kept`, one that a ledger on disk will adopt."""
        ledger = cls(None)
        ledger.kept = kept
        return ledger

    @classmethod
    def open(cls, path: str | os.PathLike[str], run: str = "") -> Ledger:
        """The ledger at `path`, ready to be written; a new one if there is none. `run` is whose it must be.

        A line that a crash tore is counted as one largest round of every client, and that count is written down.
        """
        ledger = cls(Path(path), run, Witness(witness_folder()))
        if not ledger._file.exists():
            make_folder(ledger._file.parent)
            write_atomically(ledger._file, b"")
        content, whole = ledger._take_in()
        ledger._sync()
        if whole < len(content):
            line, record, checksum = ledger._chain.next_line(_torn(len(content) - whole))
            write_atomically(ledger._file, content[:whole], line)
            ledger._size = whole + len(line)
            ledger._chain.take(record, checksum)
        ledger._chain.remember()
        return ledger

    @classmethod
    def read(cls, path: str | os.PathLike[str], run: str = "") -> Ledger:
        """The ledger at `path` as it stands, to look at: nothing is written, a torn line is counted all the same.

        Whoever reads the ledger of a run directory uses `fedkge.runs.account.open_account`, which also looks at
        the clients' states.
        """
        ledger = cls(Path(path), run, Witness(witness_folder()))
        if not ledger._file.is_file():
            raise PrivacyError(f"{path}: expected a privacy ledger, found no such file; was the run trained privately?")
        ledger._take_in()
        with suppress(PrivacyError):  # on a read-only disk there is nothing to sync
            ledger._sync()
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
            if account is not None and account.promise == promise and not account.provisional:
                return
            if account is not None and not account.provisional:
                raise PrivacyError(
                    f"{self._name}: {promise.client} promised {_differences(account.promise, promise)}; a promise "
                    "holds for the whole run: keep it, or start a new run: `fedkge account` adds the two up"
                )
            self._append({"kind": "promise", **promise.record()})

    def pay_once(self, promise: Promise, what: str, charges: Sequence[Charge], value: Any) -> None:
        """Write down what a client releases once before its promise, and what comes out: one line holds both.

        It is on the disk when this returns; only then may `value` be used. Broken off before, the line is not there
        and nobody has seen the value, so another may be drawn. `promise` is provisional: what is known of the
        promise by now (budget, delta, accountant, data). It lets every reader count the charge if the real promise
        never follows.
        """
        with self._lock:
            account = self._accounts.get(promise.client)
            if account is not None and (not account.provisional or what in account.once):
                raise PrivacyError(
                    f"{self._name}: the {what} of {promise.client} was to be released after its promise, or twice; use "
                    "what was released, or start a new run"
                )
            records = [charge.record() for charge in merged(charges)]
            line = {"kind": "once", "what": what, "charges": records, "value": value, "promise": promise.record()}
            self._append(line)

    def adopt(self, draft: Ledger) -> None:
        """Write down everything that was released once and promised in `draft`, which nobody has used yet."""
        for client, promise in draft.promises.items():
            for what, once in draft.once(client).items():
                self.pay_once(replace(promise, largest_round=()), what, once.charges, once.value)
            self.promise(promise)

    def once(self, client: str) -> Mapping[str, Once]:
        """What the client has released once before its promise; empty for one that the ledger does not know."""
        with self._lock:
            account = self._accounts.get(client)
            return dict(account.once) if account else {}

    def is_promised(self, client: str) -> bool:
        """Whether the client has made its promise, and not only released something before it."""
        with self._lock:
            account = self._accounts.get(client)
            return account is not None and not account.provisional

    def charge(self, client: str, round: int, charges: Sequence[Charge]) -> None:  # noqa: A002
        """Write down what a round is about to spend; it is on the disk when this returns.

        A round that is already paid for, and has not left, is not paid twice. One that has left is: training it
        again (from an older checkpoint) draws new noise over the same triples, and that is a new release.
        """
        spent = merged(charges)
        with self._lock:
            account = self._account(client)
            if account.provisional:
                raise PrivacyError(f"{self._name}: {client} has promised nothing yet; promise before charging")
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

    @property
    def releases(self) -> int:
        """How many releases were written, of all clients."""
        with self._lock:
            return self._releases

    @property
    def mark(self) -> str:
        """The random number of the last line; blank before the first. It depends on no data, so it may leave."""
        with self._lock:
            return self._chain.mark

    def has_mark(self, mark: str) -> bool:
        """Whether a line of this ledger has this random number: then it holds all that was written before that one."""
        with self._lock:
            return self._chain.has_mark(mark)

    def has_charged(self, client: str, round: int) -> bool:  # noqa: A002
        """Whether this round of the client was charged, or another one that is not released yet."""
        with self._lock:
            account = self._account(client)
            return bool(account.unreleased) or any(entry.round == round for entry in account.entries)

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
        """What it paid before its rounds and for them. The promised epsilon limits this; extras add to it."""
        with self._lock:
            account = self._account(client)
            before = [charge for once in account.once.values() for charge in once.charges]
            return merged((*before, *(charge for entry in account.entries for charge in entry.charges)))

    def by_round(self, client: str) -> tuple[Entry, ...]:
        """The client's rounds one by one, in the order they were charged; `once` is what it paid before them."""
        with self._lock:
            return tuple(self._account(client).entries)

    def spent(self, client: str) -> float:
        """Epsilon of everything so far, at the promised delta and by the promised accountant.

        Where noise was chosen from what was seen, the running sum is no guarantee; the promised epsilon is.
        """
        promise = self._account(client).promise
        if promise.is_paid(Payment.WHOLE_BUDGET) and promise.epsilon is not None:
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

    def _account(self, client: str) -> ClientEntries:
        if client not in self._accounts:
            known = ", ".join(self._accounts) or "nobody"
            raise PrivacyError(f"{self._name}: {client} has promised nothing (known: {known}); promise before charging")
        return self._accounts[client]

    def _append(self, record: dict[str, Any]) -> None:
        """Write a line, sync it, let the witness see it, and only then believe it.

        Broken off in between, this ledger writes nothing more.
        """
        self._check_alone()
        line, marked, checksum = self._chain.next_line(record)
        self._failed = True
        if self.path is not None:
            self._write(line)
        self._chain.take(marked, checksum)
        self._chain.remember()
        self._apply(record)
        self._failed = False

    def _write(self, line: bytes) -> None:
        try:
            with self._file.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._take_back(len(line))
            raise PrivacyError(
                f"{self._name}: could not be written ({error.strerror or error}), so nothing was released; "
                "free some space or make the folder writable, then `fedkge resume`"
            ) from error
        self._size += len(line)

    def _take_back(self, length: int) -> None:
        """Cut off half a line for which there was no space. Nobody was told that it was written, so nothing was drawn
        or released for it; left there, it would be counted as a round of every client.
        """
        with suppress(OSError):
            if self._size < _size_of(self._file) < self._size + length:
                os.truncate(self._file, self._size)

    def _check_alone(self) -> None:
        """Another process may have charged, or released, what this one takes for paid."""
        size = self._size if self.path is None else _size_of(self.path)
        if self._failed or size != self._size:
            raise PrivacyError(
                f"{self._name}: it was opened to be read, an earlier line could not be written, or another "
                "process writes it too; nothing was released. Let one run write it, and open it again (`resume`)"
            )

    def _take_in(self) -> tuple[bytes, int]:
        """Read the file and check it against the witness; its content, and how many bytes of it are whole lines.

        The witness is asked before the lines are read. A run that goes on meanwhile writes a line before it shows it
        to the witness, so what the witness saw is always among the lines that are read afterwards.
        """
        self._chain.run = self._chain.run or run_of(self._file.read_bytes(), self._name)
        seen = self._chain.recall()
        content = self._file.read_bytes()
        whole = self._read(content)
        self.notice = self._chain.check(self._name, seen)
        return content, whole

    def _sync(self) -> None:
        """Put on the disk what a process that was killed has written and not synced: it is about to be believed."""
        try:
            with self._file.open("rb") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise PrivacyError(
                f"{self._name}: could not be synced ({error.strerror or error}); mend the disk"
            ) from error

    def _read(self, content: bytes) -> int:
        """Take in every whole line, and a torn one as what it may have cost; how many bytes were whole."""
        whole = 0
        for number, (record, checksum, end) in enumerate(read_lines(content, self._name), start=1):
            try:
                self._chain.take(record, checksum)
                self._apply({key: value for key, value in record.items() if key not in (NONCE, RUN)})
            except (KeyError, TypeError, ValueError, PrivacyError) as error:
                raise damage(self._name, number, f"it makes no sense ({error})") from error
            whole = end
        if whole < len(content):
            self._apply(_torn(len(content) - whole))
        self._size = whole
        return whole

    def _apply(self, record: Mapping[str, Any]) -> None:
        kind = record["kind"]
        if kind == "promise":
            promise = Promise.of_record(record)
            known = self._accounts.get(promise.client)
            self._accounts[promise.client] = known.promised(promise) if known else ClientEntries(promise)
        elif kind == "once":
            promise = Promise.of_record(record["promise"])
            account = self._accounts.setdefault(promise.client, ClientEntries(promise, provisional=True))
            if record["what"] in account.once:
                raise ValueError(f"the {record['what']} of {promise.client} stands in an earlier line")
            charges = tuple(Charge.of_record(charge) for charge in record["charges"])
            account.once[record["what"]] = Once(charges, record["value"])
        elif kind == "torn":
            for account in self._accounts.values():
                account.entries.append(Entry(None, account.promise.largest_round))
        elif kind == "charge":
            charges = tuple(Charge.of_record(charge) for charge in record["charges"])
            self._account(record["client"]).charge(record["round"], charges)
        elif kind == "release":
            self._account(record["client"]).release(record["round"], record.get("state", ""))
            self._releases += 1
        elif kind == "extra":
            self._account(record["client"]).extras.append(Extra.of_record(record))
        elif kind == "extra-value":
            self._account(record["client"]).keep_extra(record["name"], record["value"])
        else:
            raise ValueError(f"unknown kind {kind!r}")


def _size_of(path: Path) -> int:
    """-1 where it cannot be told."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _torn(length: int) -> dict[str, Any]:
    return {"kind": "torn", "bytes": length}


def _differences(made: Promise, asked: Promise) -> str:
    """Where the two differ: what was promised, and what came."""
    one, two = made.record(), asked.record()
    return "; ".join(f"{key} {json.dumps(one[key])}, got {json.dumps(two[key])}" for key in one if one[key] != two[key])


def _words(charges: Sequence[Charge]) -> str:
    return json.dumps([charge.record() for charge in charges])
