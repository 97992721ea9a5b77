"""What runs have spent: each ledger, all of them together, and a triple that several clients hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedkge.accounting import make_accountant
from fedkge.accounting.accountants import Accountant
from fedkge.accounting.curves import Curve, epsilon_over_rounds
from fedkge.accounting.deltas import chosen_delta
from fedkge.accounting.ledger import Charges, Ledger
from fedkge.accounting.posterior import GuessWorth, guess_worth
from fedkge.accounting.statements import Total, epsilon_by_owners, spending_of_all, spending_over_runs
from fedkge.api.budgets import Budget, budget_of
from fedkge.api.ledgers import RunLedger, open_ledgers
from fedkge.api.opening import RunLike
from fedkge.base.numbers import finite
from fedkge.base.tabular import Row, Tabular
from fedkge.report.promise_words import NEIGHBOURS

POINTS = 10
"""So many points of epsilon over rounds are counted."""


@dataclass(frozen=True, slots=True)
class ClientAccount:
    """One client in one run: its budget, who counts, and how many rounds were charged, released, or torn by a crash."""

    budget: Budget
    accountant: str
    neighbours: str
    rounds_charged: int
    rounds_released: int
    torn_lines: int

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "budget": self.budget.promised,
            "spent": finite(self.budget.spent),
            "left": self.budget.left,
            "delta": self.budget.delta,
            "accountant": self.accountant,
            "neighbours": self.neighbours,
            "rounds_charged": self.rounds_charged,
            "rounds_released": self.rounds_released,
            "torn_lines": self.torn_lines,
            "private": self.budget.private,
            "not_private_because": self.budget.not_private_because,
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Account(Tabular):
    """What the clients of one or several runs have spent.

    `together` is each client's epsilon over all runs at `delta`, infinite where nothing is guaranteed. `guesses` say
    what a guess about one triple is worth. `by_owners` is the worst epsilon of a triple that so many clients hold.
    `counted_by_costliest` names the runs in which nobody is known to hold a client's triples: an upper bound is counted
    for them. `curves` have epsilon over rounds.
    """

    runs: Mapping[str, Mapping[str, ClientAccount]]
    delta: float
    accountant: str
    sound: bool
    together: Mapping[str, float]
    guesses: Mapping[str, GuessWorth]
    counted_by_costliest: Mapping[str, tuple[str, ...]]
    by_owners: Mapping[int, float]
    curves: Mapping[str, Curve]
    notices: tuple[str, ...] = ()

    shown: ClassVar[Mapping[str, str]] = {
        "run": "run",
        "client": "client",
        "budget": "budget",
        "spent": "spent",
        "left": "left",
        "delta": "delta",
        "private": "private",
    }

    @property
    def not_private_because(self) -> list[str]:
        """Why the runs are not private, each reason once."""
        budgets = [client.budget for clients in self.runs.values() for client in clients.values()]
        return list(dict.fromkeys(one.not_private_because for one in budgets if not one.private))

    @property
    def private(self) -> bool:
        """Whether the numbers are a guarantee."""
        return not self.not_private_because

    def title(self) -> str:
        """The largest epsilon, and what makes it worth nothing."""
        worst = max(self.together.values())
        cost = f"epsilon {worst:.3f}" if math.isfinite(worst) else "no guarantee"
        runs = "1 run" if len(self.runs) == 1 else f"{len(self.runs)} runs together"
        reasons = (f"NOT PRIVATE: {reason}." for reason in self.not_private_because)
        return " ".join([f"{runs}: at most {cost} per client at delta {self.delta:g} ({self.accountant}).", *reasons])

    def rows(self) -> list[Row]:
        """One row per run and client."""
        return [
            {"run": run, "client": name, **client.record()}
            for run, clients in self.runs.items()
            for name, client in clients.items()
        ]

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON; an epsilon of null guarantees nothing."""
        return {
            "runs": [
                {"run": run, "clients": {name: client.record() for name, client in clients.items()}}
                for run, clients in self.runs.items()
            ],
            "delta": self.delta,
            "accountant": self.accountant,
            "sound": self.sound and self.private,
            "private": self.private,
            "not_private_because": self.not_private_because,
            "together": {client: finite(cost) for client, cost in self.together.items()},
            "guess": {client: each.record() for client, each in self.guesses.items()},
            "counted_by_costliest": {client: list(paths) for client, paths in self.counted_by_costliest.items()},
            "by_owners": {str(count): finite(cost) for count, cost in self.by_owners.items()},
            "epsilon_over_rounds": {
                client: [{"round": number, "epsilon": finite(cost)} for number, cost in curve]
                for client, curve in self.curves.items()
            },
        }


def account(
    *runs: RunLike, delta: float | None = None, allow_large_delta: bool = False, accountant: str | None = None
) -> Account:
    """Count what the clients of these runs have spent, each run and all together.

    A run is a Run, a run directory or a ledger file. Without `delta`, the smallest that a client promised is taken.

    >>> import fedkge as fk
    >>> shards = fk.split(fk.synthetic_graph(60, 4, 400, seed=1), clients=2, seed=7)
    >>> run = fk.train(shards, epsilon=8, rounds=1, dimension=8, negatives=8)
    >>> {client: epsilon <= 8 for client, epsilon in account(run).together.items()}
    {'client-0': True, 'client-1': True}
    """
    ledgers, notices = open_ledgers(runs)
    given, name = _delta(ledgers, delta, allow_large_delta), accountant or _accountant(ledgers)
    counting = make_accountant(name)
    totals = spending_over_runs([run.ledger for run in ledgers], given, counting)
    costs = {client: total.spending.epsilon(given, counting) for client, total in totals.items()}
    return Account(
        runs={str(run.path): _clients(run.ledger) for run in ledgers},
        delta=given,
        accountant=name,
        sound=counting.sound,
        together=costs,
        guesses=_guesses(totals, costs, given, counting),
        counted_by_costliest=_unsure(ledgers, totals),
        by_owners=_by_owners(ledgers, totals, given, counting),
        curves=_curves(ledgers, totals, given, counting),
        notices=tuple(notices),
    )


def _delta(runs: Sequence[RunLedger], given: float | None, allow_large: bool) -> float:
    """The given delta, if it is small enough for the largest client; else the smallest that a client promised."""
    promises = [promise for run in runs for promise in run.ledger.promises.values()]
    if given is not None:
        plans = [promise.facts.plan for promise in promises]
        return chosen_delta(given, max((plan.triples for plan in plans if plan), default=1), allow_large)
    return min(promise.delta for promise in promises)


def _accountant(runs: Sequence[RunLedger]) -> str:
    names = {promise.accountant for run in runs for promise in run.ledger.promises.values()}
    return names.pop() if len(names) == 1 else "pld"


def _clients(ledger: Ledger) -> dict[str, ClientAccount]:
    found = {}
    for client, promise in ledger.promises.items():
        entries = ledger.by_round(client)
        found[client] = ClientAccount(
            budget_of(ledger, client),
            promise.accountant,
            NEIGHBOURS[promise.neighbours],
            len(entries),
            sum(entry.released for entry in entries),
            sum(entry.round is None for entry in entries),
        )
    return found


def _unsure(runs: Sequence[RunLedger], totals: Mapping[str, Total]) -> dict[str, tuple[str, ...]]:
    """Each client's runs in which nobody is known to hold its triples: their costliest client was counted."""
    found = {name: tuple(str(runs[place].path) for place in total.unsure) for name, total in totals.items()}
    return {name: paths for name, paths in found.items() if paths}


def _guesses(
    totals: Mapping[str, Total], costs: Mapping[str, float], delta: float, accountant: Accountant
) -> dict[str, GuessWorth]:
    """What a guess about a triple of each client is worth after all runs; nothing where nothing is guaranteed."""
    found = {}
    for client, total in totals.items():
        worth = guess_worth(total.spending.charges, costs[client], delta, adaptive=bool(total.spending.budgets))
        if worth and accountant.sound:
            found[client] = worth
    return found


def _by_owners(
    runs: Sequence[RunLedger], totals: Mapping[str, Total], delta: float, accountant: Accountant
) -> dict[int, float]:
    unsure = any(total.unsure for total in totals.values())
    everything = spending_of_all(run.ledger for run in runs) if unsure else None
    spendings = {name: total.spending for name, total in totals.items()}
    return epsilon_by_owners(spendings, delta, accountant, everything)


def _curves(
    runs: Sequence[RunLedger], totals: Mapping[str, Total], delta: float, accountant: Accountant
) -> dict[str, Curve]:
    """Epsilon over the charges that count for each client, run after run, where all noise was fixed in advance."""
    curves = {}
    for name, total in totals.items():
        entries = [charges for place, client in total.parts for charges in _releases(runs[place].ledger, client)]
        if entries and not total.spending.budgets:
            curves[name] = epsilon_over_rounds(entries, delta, accountant, POINTS)
    return curves


def _releases(ledger: Ledger, client: str) -> list[Charges]:
    """What a client was charged, round by round, the first with what was paid before it; then each release beyond."""
    before = tuple(charge for once in ledger.once(client).values() for charge in once.charges)
    first, *rest = [entry.charges for entry in ledger.by_round(client)] or [()]
    rounds = [(*before, *first), *rest] if before or first else []
    return rounds + [extra.charges for extra in ledger.extras(client)]
