"""When a run crosses its budgets: noise and steps are public, so this is known before training begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import isfinite

from fedkge.accounting.accountants import Accountant, make_accountant
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.published import PublishedAccountant
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.advance import accountant_of
from fedkge.defences.defence import ClientDefence
from fedkge.defences.planning import client_defence
from fedkge.graph import Graph
from fedkge.graph.shards import client_names


def defences_of(shards: Sequence[Graph], configuration: Configuration) -> list[ClientDefence]:
    """Every client's defence, promised to nobody."""
    ledger = Ledger.in_memory()
    if not chosen_defence(configuration).keeps_ledger:
        return []
    return [
        client_defence(configuration, name, shard, ledger, number)
        for number, (name, shard) in enumerate(zip(client_names(len(shards)), shards, strict=True))
    ]


def epsilon_after(defences: Sequence[ClientDefence], rounds: int, accountant: Accountant) -> float:
    """The largest epsilon of any client after so many rounds."""
    return max(accountant.epsilon(defence.planned(rounds), defence.delta) if rounds else 0.0 for defence in defences)


def crossings(defences: Sequence[ClientDefence], budgets: Sequence[float]) -> dict[float, int]:
    """The last round that each budget covers: 0 where it covers none, the last one where it is never used up."""
    options = defences[0].options
    after = cache(partial(epsilon_after, defences, accountant=counting(options)))
    found: dict[float, int] = {}
    for budget in sorted(budgets):
        low, high = max(found.values(), default=0), options.training.rounds
        while low < high:  # epsilon rises with the rounds
            middle = (low + high + 1) // 2
            if after(middle) <= budget:
                low = middle
            else:
                high = middle - 1
        found[budget] = low
    return found


def counting(options: Configuration) -> Accountant:
    """Who counts: for what the paper prints its own formulas, at all orders, or its smaller budgets do not exist."""
    name = accountant_of(options)
    return PublishedAccountant(respect_alpha_range=False) if name == "published" else make_accountant(name)


def spent_after(defences: Sequence[ClientDefence], rounds: int) -> Mapping[str, float | None]:
    """Epsilon by the accountant that holds, and by the paper's formulas: within the orders that its lemma allows (None
    where it allows none), and at all orders.
    """
    options = defences[0].options
    if accountant_of(options) != "published":
        return {"sound": epsilon_after(defences, rounds, make_accountant(options.privacy.accountant))}
    strict = epsilon_after(defences, rounds, PublishedAccountant())
    loose = epsilon_after(defences, rounds, counting(options))
    return {"sound": None, "published": strict if isfinite(strict) else None, "published, all orders": loose}
