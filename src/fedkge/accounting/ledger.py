"""The privacy ledger: it records the spending of every client before the client spends.

A ledger is one file of JSON lines that only grows. Each line carries a checksum of itself and of the line before, so
damage is detected. Each charge is on the disk before `charge` returns, and each release before the upload leaves.
The order of a client's round is: `charge`, draw the noise, write the state beside the last one, `release` it, put it in
its place, upload. So no state from which a run can continue contains a round that was charged but not released.

Guarantees: after a crash at any moment, the ledger on disk contains at least every charge for which `charge` has
returned. A ledger that was cut, or restored from an older copy, is refused if the `Witness` of its last head exists.
(A party that can write the file and the witness can forge both: they protect against accidents and backups only.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedkge.accounting.accountants import merged
from fedkge.accounting.extras import Extra
from fedkge.accounting.ledger_accounts import Accounts
from fedkge.accounting.ledger_chain import Chain
from fedkge.accounting.ledger_entries import Charges, Entry, Once
from fedkge.accounting.ledger_file import LedgerFile
from fedkge.accounting.ledger_lines import NONCE, RUN, damage, read_lines, run_of
from fedkge.accounting.ledger_records import (
    ChargeRecord,
    ExtraRecord,
    ExtraValueRecord,
    OnceRecord,
    ReleaseRecord,
    TornRecord,
    charge_records,
    promise_record,
)
from fedkge.accounting.promises import Promise, covers
from fedkge.accounting.witness import Witness, witness_folder
from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import Charge
from fedkge.store.durable_files import START_AGAIN

__all__ = ["FILE_NAME", "Charges", "Entry", "Ledger", "Once", "Promise"]

FILE_NAME = "ledger.jsonl"


class Ledger(Accounts):
    """The durable account of a run. Every method may be called by several threads.

    >>> from fedkge.mechanisms.events import SampledGaussian
    >>> charges = (Charge(SampledGaussian(rate=0.05, multiplier=1), steps=100),)
    >>> ledger = Ledger.in_memory()
    >>> ledger.promise(Promise("client-0", delta=1e-5, epsilon=8, largest_round=charges))
    >>> ledger.charge("client-0", 1, charges); ledger.release("client-0", 1)
    >>> ledger.charges("client-0") == charges, round(ledger.spent("client-0"), 1)
    (True, 3.5)
    """

    def __repr__(self) -> str:
        return f"Ledger({str(self.path) if self.path else 'in memory'!r}, clients: {', '.join(self.clients) or 'none'})"

    def __init__(self, path: Path | None, run: str = "", witness: Witness | None = None) -> None:
        super().__init__()
        self.path = path
        self.name = str(path or Accounts.name)
        self.kept = path is not None
        """Whether its promises are in a file, now or later."""
        self.notice = ""
        """A notice about this ledger for people; blank if there is none."""
        self._file = LedgerFile(path)
        self._chain = Chain(run, witness)
        self._failed = False
        self._failure = ""
        """The reason why a line could not be written; blank if all lines were written."""

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
        ledger._file.make()
        content, whole = ledger._take_in()
        ledger._file.sync()
        if whole < len(content):
            line, record, checksum = ledger._chain.next_line(TornRecord(len(content) - whole).record())
            ledger._file.replace_end(content[:whole], line)
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
        if not Path(path).is_file():
            raise PrivacyError(
                f"{path}: expected a privacy ledger, found no such file; was the run trained with a defence?"
            )
        ledger._take_in()
        with suppress(PrivacyError):  # on a read-only disk there is nothing to sync
            ledger._file.sync()
        ledger._failed = True
        return ledger

    def promise(self, promise: Promise) -> None:
        """Record a client's promise, before its first charge; repeating the same promise changes nothing."""
        with self._lock:
            account = self._accounts.get(promise.client)
            if account is not None and account.promise == promise and not account.provisional:
                return
            if account is not None and not account.provisional:
                raise PrivacyError(
                    f"{self.name}: {promise.client} promised {_differences(account.promise, promise)}; a promise "
                    "holds for the whole run. Keep it, or start a new run (`fedkge account` adds the two up)"
                )
            self._append(promise_record(promise))

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
                    f"{self.name}: the {what} of {promise.client} must be released before the promise and once; use "
                    "what was released, or start a new run"
                )
            self._append(OnceRecord(what, charge_records(merged(charges)), value, promise.record()).record())

    def adopt(self, draft: Ledger) -> None:
        """Record all one-time releases and promises of `draft`, which has not been used yet."""
        for client, promise in draft.promises.items():
            for what, once in draft.once(client).items():
                self.pay_once(replace(promise, largest_round=()), what, once.charges, once.value)
            self.promise(promise)

    def charge(self, client: str, round: int, charges: Sequence[Charge]) -> None:  # noqa: A002
        """Write down what a round is about to spend; it is on the disk when this returns.

        A round that is already paid for, and has not left, is not paid twice. One that has left is: training it
        again (from an older checkpoint) draws new noise over the same triples, and that is a new release.
        """
        spent = merged(charges)
        with self._lock:
            account = self._account(client)
            if account.provisional:
                raise PrivacyError(f"{self.name}: {client} has no promise yet; promise before charging")
            if not covers(account.promise.largest_round, spent):
                raise PrivacyError(
                    f"{self.name}: round {round} of {client} would spend {_words(spent)}, more than the largest "
                    f"round that was promised, {_words(account.promise.largest_round)}; promise that much"
                )
            if not account.charged(round, spent):
                self._append(ChargeRecord(client, round, charge_records(spent)).record())
            else:
                self._check_alone()

    def release(self, client: str, round: int, state: str = "") -> None:  # noqa: A002
        """Mark that what this round drew may leave, in the state with this fingerprint; in none, if the round failed
        and others hear of it.

        Every round that was charged before counts as released with it: it may have paid for what leaves.
        """
        with self._lock:
            account = self._account(client)
            if round in account.unreleased or (account.released(round) and state and state not in account.states):
                self._append(ReleaseRecord(client, round, state).record())
            elif not account.released(round):
                raise PrivacyError(
                    f"{self.name}: round {round} of {client} was never charged, so do not release it; charge it first"
                )

    @property
    def mark(self) -> str:
        """The random number of the last line; blank before the first. It depends on no data, so it may leave."""
        with self._lock:
            return self._chain.mark

    def has_mark(self, mark: str) -> bool:
        """Whether a line of this ledger has this random number: then it holds all that was written before that one."""
        with self._lock:
            return self._chain.has_mark(mark)

    def charge_extra(self, client: str, extra: Extra) -> None:
        """Promise and charge a release beyond the rounds; it is on the disk when this returns.

        One of this name that is charged and not kept was seen by nobody, and is not charged again.
        """
        with self._lock:
            found = [each for each in self._account(client).extras if each.name == extra.name]
            if not found:
                self._append(ExtraRecord(client, extra.name, extra.epsilon, charge_records(extra.charges)).record())
            elif found[0] != replace(extra, value=None):
                raise PrivacyError(f"{self.name}: {client} has {extra.name!r} already, released or at another price")
            else:
                self._check_alone()

    def keep_extra(self, client: str, name: str, value: Mapping[str, int]) -> None:
        """Record the value that a charged release drew, before any party sees it."""
        with self._lock:
            if not any(each.name == name and each.value is None for each in self._account(client).extras):
                raise PrivacyError(f"{self.name}: {name!r} of {client} was never charged, or has a value already")
            self._append(ExtraValueRecord(client, name, dict(value)).record())

    def _append(self, record: dict[str, Any]) -> None:
        """Write a line, sync it, tell the witness, and only then apply it.

        If it is interrupted, this ledger writes nothing more.
        """
        self._check_alone()
        line, marked, checksum = self._chain.next_line(record)
        self._failed = True
        try:
            self._write(line)
        except PrivacyError as error:
            self._failure = str(error)  # the next caller gets it too: it may be another client's thread
            raise
        self._chain.take(marked, checksum)
        self._chain.remember()
        self._apply(record)
        self._failed = False

    def _write(self, line: bytes) -> None:
        self._file.append(line)

    def _check_alone(self) -> None:
        """Refuse to write if another process wrote: it may have charged or released what this one considers paid."""
        if self._failure:
            raise PrivacyError(f"an earlier line was not written: {self._failure}")
        if self._failed or not self._file.is_as_known():
            raise PrivacyError(
                f"{self.name}: it was opened for reading, or an earlier line was interrupted, or another "
                f"process writes to it. Nothing was released. Let one process write to it, and {START_AGAIN}"
            )

    def _take_in(self) -> tuple[bytes, int]:
        """Read the file and check it against the witness; its content, and how many bytes of it are whole lines.

        The witness is asked before the lines are read. A run that goes on meanwhile writes a line before it shows it
        to the witness, so what the witness saw is always among the lines that are read afterwards.
        """
        self._chain.run = self._chain.run or run_of(self._file.read(), self.name)
        seen = self._chain.recall()
        content = self._file.read()
        whole = self._read(content)
        self.notice = self._chain.check(self.name, seen)
        return content, whole

    def _read(self, content: bytes) -> int:
        """Take in every whole line, and a torn one as what it may have cost; how many bytes were whole."""
        whole = 0
        for number, (record, checksum, end) in enumerate(read_lines(content, self.name), start=1):
            try:
                self._chain.take(record, checksum)
                self._apply({key: value for key, value in record.items() if key not in (NONCE, RUN)})
            except (ValueError, PrivacyError) as error:
                raise damage(self.name, number, f"it makes no sense ({error})") from error
            whole = end
        if whole < len(content):
            self._apply(TornRecord(len(content) - whole).record())
        self._file.know(whole)
        return whole


def _differences(made: Promise, asked: Promise) -> str:
    """Where the two differ: what was promised, and what came."""
    one, two = made.record(), asked.record()
    return "; ".join(f"{key} {json.dumps(one[key])}, got {json.dumps(two[key])}" for key in one if one[key] != two[key])


def _words(charges: Sequence[Charge]) -> str:
    return json.dumps([charge.record() for charge in charges])
