"""The accounts in a ledger's lines, read in order: promises, charges and releases of each client."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from fedkge.accounting.accountants import make_accountant, merged
from fedkge.accounting.extras import Extra
from fedkge.accounting.facts import Payment
from fedkge.accounting.ledger_entries import Charges, ClientEntries, Entry, Once
from fedkge.accounting.ledger_records import (
    ChargeRecord,
    ExtraRecord,
    ExtraValueRecord,
    OnceRecord,
    ReleaseRecord,
    TornRecord,
    charges_of,
    decoded,
)
from fedkge.accounting.promises import Promise
from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import Charge


class Accounts:
    """The accounts of all clients, to read. `Ledger` adds the file and everything that writes.

    Every method may be called by several threads.
    """

    name = "privacy ledger"
    """How errors call it."""

    def __init__(self) -> None:
        self._accounts: dict[str, ClientEntries] = {}
        self._releases = 0
        self._lock = threading.RLock()

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients that have promised, in the order of the promises."""
        with self._lock:
            return tuple(self._accounts)

    @property
    def promises(self) -> Mapping[str, Promise]:
        """The promise of each client."""
        with self._lock:
            return {name: account.promise for name, account in self._accounts.items()}

    def is_promised(self, client: str) -> bool:
        """Whether the client has made its promise, and not only released something before it."""
        with self._lock:
            account = self._accounts.get(client)
            return account is not None and not account.provisional

    def once(self, client: str) -> Mapping[str, Once]:
        """The client's one-time releases before its promise; empty for a client that is not in the ledger."""
        with self._lock:
            account = self._accounts.get(client)
            return dict(account.once) if account else {}

    def is_paid(self, client: str, round: int, charges: Sequence[Charge]) -> bool:  # noqa: A002
        """Whether the round has exactly these charges and is not released: then it may be trained without paying."""
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

    def has_charged(self, client: str, round: int) -> bool:  # noqa: A002
        """Whether this round of the client was charged, or another one that is not released yet."""
        with self._lock:
            account = self._account(client)
            return bool(account.unreleased) or any(entry.round == round for entry in account.entries)

    def has_released(self, client: str, state: str) -> bool:
        """Whether this state was released. A run must not continue from another one: its round may be drawn again."""
        with self._lock:
            return state in self._account(client).states

    @property
    def releases(self) -> int:
        """How many releases were written, of all clients."""
        with self._lock:
            return self._releases

    def extras(self, client: str) -> tuple[Extra, ...]:
        """The client's releases beyond the rounds, in the order they were charged."""
        with self._lock:
            return tuple(self._account(client).extras)

    def by_round(self, client: str) -> tuple[Entry, ...]:
        """The client's rounds one by one, in the order they were charged; `once` is what it paid before them."""
        with self._lock:
            return tuple(self._account(client).entries)

    def charges_of_rounds(self, client: str) -> Charges:
        """The charges before and for the client's rounds. The promised epsilon limits them; extras add to it."""
        with self._lock:
            account = self._account(client)
            before = [charge for once in account.once.values() for charge in once.charges]
            return merged((*before, *(charge for entry in account.entries for charge in entry.charges)))

    def charges(self, client: str) -> Charges:
        """Everything that the client was charged, released or not, equal events together."""
        extras = (charge for extra in self.extras(client) for charge in extra.charges)
        return merged((*self.charges_of_rounds(client), *extras))

    def spent(self, client: str) -> float:
        """Epsilon of everything so far, at the promised delta and by the promised accountant.

        Where noise was chosen from earlier releases, the running sum is no guarantee; the promised epsilon is.
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

    def _account(self, client: str) -> ClientEntries:
        if client not in self._accounts:
            known = ", ".join(self._accounts) or "nobody"
            raise PrivacyError(f"{self.name}: {client} has no promise (known: {known}); promise before charging")
        return self._accounts[client]

    def _apply(self, record: Mapping[str, Any]) -> None:
        """Apply a line; a ValueError or a PrivacyError if it contradicts the lines before it."""
        match decoded(record):
            case Promise() as promise:
                known = self._accounts.get(promise.client)
                self._accounts[promise.client] = known.promised(promise) if known else ClientEntries(promise)
            case OnceRecord() as once:
                self._release_once(once)
            case TornRecord():
                for account in self._accounts.values():
                    account.entries.append(Entry(None, account.promise.largest_round))
            case ChargeRecord() as charge:
                self._account(charge.client).charge(charge.round, charges_of(charge.charges))
            case ReleaseRecord() as release:
                self._account(release.client).release(release.round, release.state)
                self._releases += 1
            case ExtraRecord() as extra:
                self._account(extra.client).extras.append(extra.extra())
            case ExtraValueRecord() as value:
                self._account(value.client).keep_extra(value.name, value.value)

    def _release_once(self, once: OnceRecord) -> None:
        promise = Promise.of_record(once.promise)
        account = self._accounts.setdefault(promise.client, ClientEntries(promise, provisional=True))
        if once.what in account.once:
            raise ValueError(f"the {once.what} of {promise.client} stands in an earlier line")
        account.once[once.what] = Once(charges_of(once.charges), once.value)
