"""What the clients of several runs have spent together, run by run, client by client, and for a shared triple."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedkge.accounting.accountants import Accountant, merged
from fedkge.accounting.ledger import FILTERED, Ledger
from fedkge.accounting.owners import worst_epsilon
from fedkge.mechanisms.events import Charge


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
    if not promise.facts.get(FILTERED):
        return Spending(charges)
    return Spending(budgets=((ledger.spent(client), promise.delta),) if charges else ())


def spending_over_runs(ledgers: Sequence[Ledger]) -> dict[str, Spending]:
    """What each client spent in all runs on the same data."""
    names = dict.fromkeys(client for ledger in ledgers for client in ledger.clients)
    return {name: together(spending_of(ledger, name) for ledger in ledgers if name in ledger.clients) for name in names}


def epsilon_by_owners(clients: Mapping[str, Spending], delta: float, accountant: Accountant) -> dict[int, float]:
    """The largest epsilon of a triple that one client holds, that two hold, and so on; that all hold comes last.

    Up to five clients every number of owners is listed, otherwise one, two and all.
    """
    count = len(clients)
    numbers = range(1, count + 1) if count <= 5 else (1, 2, count)
    filtered = any(spending.budgets for spending in clients.values())
    found = {}
    for owners in numbers:
        if owners == 1:
            found[owners] = max(spending.epsilon(delta, accountant) for spending in clients.values())
        elif owners == count:
            found[owners] = together(clients.values()).epsilon(delta, accountant)
        elif not filtered:
            charges = {name: spending.charges for name, spending in clients.items()}
            found[owners] = worst_epsilon(charges, delta, accountant, owners)
    return found
