"""What the clients of several runs have spent together, run by run, client by client, and for a shared triple."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from fedkge.accounting.accountants import Accountant, merged
from fedkge.accounting.facts import Payment
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.owners import worst_epsilon
from fedkge.accounting.promises import covers
from fedkge.mechanisms.events import Charge

MOST_CHOICES = 50
"""So many combinations of unknown clients are counted one by one; beyond, all of them at once."""


@dataclass(frozen=True)
class Spending:
    """Charges that were fixed in advance, and the budgets of runs whose noise was not: those add up whole."""

    charges: tuple[Charge, ...] = ()
    budgets: tuple[tuple[float, float], ...] = ()
    """(epsilon, delta) of each run with a filter."""

    def epsilon(self, delta: float, accountant: Accountant) -> float:
        """What was spent at `delta`; infinite if the budgets' own deltas exceed it."""
        total, used = (math.fsum(budget[part] for budget in self.budgets) for part in (0, 1))
        if not self.charges:
            return total if used <= delta * (1 + 1e-9) else math.inf
        return total + accountant.epsilon(self.charges, delta - used) if used < delta else math.inf

    def at_least(self, other: Spending) -> bool:
        """Whether this costs at least as much as `other`, at every delta and whatever both are composed with.

        >>> Spending(budgets=((2.0, 1e-6),)).at_least(Spending(budgets=((1.0, 1e-6),)))
        True
        """
        if len(self.budgets) < len(other.budgets) or not covers(self.charges, other.charges):
            return False
        pairs = zip(self.budgets, other.budgets, strict=False)
        return all(mine >= theirs for one, two in pairs for mine, theirs in zip(one, two, strict=True))


def together(spendings: Iterable[Spending]) -> Spending:
    """All of these about the same triple.

    >>> together([Spending(budgets=((1.0, 1e-6),)), Spending(budgets=((2.0, 1e-6),))]).budgets
    ((1.0, 1e-06), (2.0, 1e-06))
    """
    found = list(spendings)
    return Spending(
        merged(charge for spending in found for charge in spending.charges),
        tuple(budget for spending in found for budget in spending.budgets),
    )


def spending_of(ledger: Ledger, client: str) -> Spending:
    """What one client spent in one run."""
    promise, charges = ledger.promises[client], ledger.charges(client)
    if not promise.is_paid(Payment.WHOLE_BUDGET):
        return Spending(charges)
    return Spending(budgets=((ledger.spent(client), promise.delta),) if charges else ())


def spending_of_all(ledgers: Iterable[Ledger]) -> Spending:
    """What all clients spent in all runs: an upper bound for every triple."""
    return together(spending_of(ledger, client) for ledger in ledgers for client in ledger.clients)


@dataclass(frozen=True)
class Total:
    """What a client has spent in several runs: the `parts` (place of the ledger, client) that were counted for it.

    `unsure` are the places of ledgers in which nobody is known to hold the same triples. Their costliest client is
    counted then, so that the total is an upper bound for a triple that one client held in each run.
    """

    spending: Spending
    parts: tuple[tuple[int, str], ...]
    unsure: tuple[int, ...] = ()


def spending_over_runs(ledgers: Sequence[Ledger], delta: float, accountant: Accountant) -> dict[str, Total]:
    """What each client spent in all these runs; clients are the same where the digests of their triples are equal.

    Names prove nothing: client-0 of three clients holds other triples than client-0 of two.
    """
    found: dict[str, Total] = {}
    seen: set[str] = set()
    for place, ledger in enumerate(ledgers):
        new = [client for client in ledger.clients if place == 0 or digest_of(ledger, client) not in {"", *seen}]
        seen.update(digest_of(ledger, client) for client in ledger.clients)
        for client in new:
            name = client if client not in found else f"{client} in {ledger.path}"
            found[name] = _total(ledgers, place, client, delta, accountant)
    return found


def digest_of(ledger: Ledger, client: str) -> str:
    """The digest of the client's triples; blank where the ledger does not tell."""
    return ledger.promises[client].facts.data


def _total(ledgers: Sequence[Ledger], place: int, client: str, delta: float, accountant: Accountant) -> Total:
    """The costliest way in which a triple of this client can have been in the other runs."""
    digest = digest_of(ledgers[place], client)
    choices, unsure = [], []
    for other, ledger in enumerate(ledgers):
        if other == place:
            choices.append([(other, client)])
            continue
        same = [name for name in ledger.clients if digest and digest_of(ledger, name) == digest]
        unsure += [] if same else [other]
        choices.append([(other, name) for name in same or ledger.clients])
    spent = {part: spending_of(ledgers[part[0]], part[1]) for parts in choices for part in parts}
    choices = [_not_covered(parts, spent) for parts in choices]
    if math.prod(map(len, choices)) > MOST_CHOICES:
        every = tuple(part for parts in choices for part in parts)
        return Total(together(spent[part] for part in every), every, tuple(unsure))
    totals = [Total(together(spent[part] for part in parts), parts, tuple(unsure)) for parts in product(*choices)]
    return max(totals, key=lambda total: total.spending.epsilon(delta, accountant)) if len(totals) > 1 else totals[0]


def _not_covered(parts: Sequence[tuple[int, str]], spent: Mapping[tuple[int, str], Spending]) -> list[tuple[int, str]]:
    """The parts without those that cost no more than another one, whatever they are composed with."""
    kept: list[tuple[int, str]] = []
    for part in parts:
        if not any(spent[other].at_least(spent[part]) for other in kept):
            kept = [other for other in kept if not spent[part].at_least(spent[other])] + [part]
    return kept


def epsilon_by_owners(
    clients: Mapping[str, Spending], delta: float, accountant: Accountant, everything: Spending | None = None
) -> dict[int, float]:
    """The largest epsilon of a triple that one client holds, that two hold, and so on; that all hold comes last.

    Up to five clients every number of owners is listed, otherwise one, two and all. Where it is not known which
    clients of several runs are the same, `everything` that was spent bounds what all hold, and only one is listed
    beside it.
    """
    count = len(clients)
    numbers = range(1, count + 1) if count <= 5 else (1, 2, count)
    partly = everything is None and not any(spending.budgets for spending in clients.values())
    found = {1: max(spending.epsilon(delta, accountant) for spending in clients.values())}
    if everything is None and count == 1:
        return found
    for owners in numbers[1:-1] if partly else ():
        charges = {name: spending.charges for name, spending in clients.items()}
        found[owners] = worst_epsilon(charges, delta, accountant, owners)
    whole = together(clients.values()) if everything is None else everything
    found[max(count, 2)] = whole.epsilon(delta, accountant)
    return found
