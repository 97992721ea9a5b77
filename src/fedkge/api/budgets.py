"""What each client of a run promised, has spent and has left, from the ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.overwritten import overwritten_runs
from fedkge.api.opening import RunLike, opened
from fedkge.base.tabular import ByClient, Row
from fedkge.report.promise_words import why_not_private
from fedkge.runs.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Budget:
    """One client's privacy budget at its `delta`.

    `promised` is None where nothing limits the spending, and `left` is None then too. `not_private_because` says why
    the numbers guarantee nothing; it is blank where they hold. Runs that were overwritten in the same directory are in
    neither `spent` nor `left`: `with_overwritten` is the epsilon of all of them together, None where there are none.
    """

    promised: float | None
    spent: float
    left: float | None
    delta: float | None
    not_private_because: str = ""
    with_overwritten: float | None = None

    @property
    def private(self) -> bool:
        """Whether the numbers are a guarantee."""
        return not self.not_private_because


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Budgets(ByClient[Budget]):
    """The privacy budget of each client: a mapping from client to Budget, and a table."""

    clients: Mapping[str, Budget]

    shown: ClassVar[Mapping[str, str]] = {
        "client": "client",
        "promised": "promised",
        "spent": "spent",
        "left": "left",
        "delta": "delta",
        "private": "private",
    }

    def title(self) -> str:
        """The table's title, and what makes its numbers worth nothing."""
        reasons = dict.fromkeys(one.not_private_because for one in self.values() if not one.private)
        before = [one.with_overwritten for one in self.values() if one.with_overwritten is not None]
        remarks = [f"NOT PRIVATE: {reason}." for reason in reasons]
        if before:
            remarks.append(f"With runs that were overwritten here, up to {max(before):.3f} was spent on the same data.")
        return " ".join(["Privacy budget per client (epsilon).", *remarks])

    def rows(self) -> list[Row]:
        """One row per client."""
        return [
            {
                "client": client,
                "promised": one.promised,
                "spent": one.spent,
                "left": one.left,
                "delta": one.delta,
                "private": one.private,
                "not_private_because": one.not_private_because,
                "with_overwritten": one.with_overwritten,
            }
            for client, one in self.items()
        ]


def remaining(run: RunLike) -> Budgets:
    """What each client has left of its privacy budget. Without a defence, spending has no limit.

    >>> import fedkge as fk
    >>> run = fk.train(fk.synthetic_graph(60, 4, 400, seed=1), rounds=1, dimension=8, negatives=8)
    >>> remaining(run)["client-0"].spent
    inf
    """
    whole = opened(run)
    if whole.ledger is None:
        undefended = Budget(None, math.inf, None, None, "this run has no defence")
        return Budgets(dict.fromkeys(whole.clients, undefended))
    paths = RunDirectory(whole.directory).earlier_ledgers() if whole.directory else []
    before = overwritten_runs(whole.ledger, paths)
    budgets = {client: budget_of(whole.ledger, client) for client in whole.ledger.clients}
    return Budgets(
        {
            client: replace(budget, with_overwritten=before[client].together) if client in before else budget
            for client, budget in budgets.items()
        }
    )


def budget_of(ledger: Ledger, client: str) -> Budget:
    """One client's budget, as its ledger has it."""
    promise, promised, spent = ledger.promises[client], ledger.promised(client), ledger.spent(client)
    left = None if promised is None else max(0.0, promised - spent)
    return Budget(promised, spent, left, promise.delta, why_not_private(promise))
