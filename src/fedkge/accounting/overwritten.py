"""The spending of runs that were overwritten in a directory: it stays spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.statements import spending_over_runs
from fedkge.accounting.validity import faults


@dataclass(frozen=True)
class Overwritten:
    """How many defended runs were overwritten, and the epsilon of a client in all of them and the present one.

    `upper_bound` says that not all of them are known to have had the client's own triples.
    """

    runs: int
    together: float
    upper_bound: bool

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON; null is no guarantee at all."""
        together = self.together if math.isfinite(self.together) else None
        return {"runs": self.runs, "together": together, "upper_bound": self.upper_bound}


def overwritten_runs(ledger: Ledger, paths: Iterable[Path]) -> Mapping[str, Overwritten]:
    """What each client of `ledger` has spent with the runs whose ledgers are at `paths`; empty where there are none.

    Counted at the client's own delta, and by its own accountant unless the runs were counted by different ones.

    >>> overwritten_runs(Ledger.in_memory(), paths=[])
    {}
    """
    earlier = [found for found in map(Ledger.read, paths) if found.clients]
    if not earlier:
        return {}
    ledgers = [ledger, *earlier]
    names = {promise.accountant for each in ledgers for promise in each.promises.values()}
    accountant = make_accountant(names.pop() if len(names) == 1 else "pld")
    deltas = {promise.delta for promise in ledger.promises.values()}
    totals = {delta: spending_over_runs(ledgers, delta, accountant) for delta in deltas}
    found = {}
    for client, promise in ledger.promises.items():
        total = totals[promise.delta][client]
        void = any(faults(each.promises[client]) for each in earlier if client in each.promises)
        cost = math.inf if void else total.spending.epsilon(promise.delta, accountant)
        found[client] = Overwritten(len(earlier), cost, bool(total.unsure))
    return found
