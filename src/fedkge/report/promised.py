"""What was promised, and what the ledger says was spent: ledger.jsonl as parts of the document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.facts import Payment
from fedkge.accounting.posterior import guess_worth
from fedkge.accounting.validity import FaultKind, faults
from fedkge.base.numbers import epsilon, percent, small
from fedkge.configuration import Configuration
from fedkge.report.document import Claim, ClientClaim, HeldCopy, PaidFigure, Spending
from fedkge.report.guess_words import guess_words
from fedkge.report.promise_words import GUARANTEE, NEIGHBOURS, fact_rows, fault_words, mechanism_sentence
from fedkge.report.wording import FIGURES, NO_PROMISE, not_covered, released, trusted
from fedkge.runs.released import described, holdings

if TYPE_CHECKING:
    from fedkge.accounting.ledger import Entry, Ledger
    from fedkge.accounting.promises import Promise

LIMIT_FPR = 0.01
MUCH = 0.5
"""If the limit is above this share of the members, the report warns."""
POINTS = 8
"""Epsilon is computed after at most so many rounds, because each takes time."""


def roc_limit(fpr: float, epsilon: float | None, delta: float | None) -> float:
    """The highest true-positive rate that (epsilon, delta)-differential privacy allows at a false-positive rate.

    >>> round(roc_limit(0.01, 1.0, 0.0), 4), roc_limit(0.01, None, None)
    (0.0272, 1.0)
    """
    if epsilon is None or delta is None:
        return 1.0
    return min(1.0, math.exp(min(epsilon, 700.0)) * fpr + delta, 1.0 - math.exp(-epsilon) * (1.0 - delta - fpr))


def gather_claim(run: Path, ledger: Ledger | None, configuration: Configuration) -> Claim:
    """The promise of the victim, which the attacks and the audit are about, and the spending of every client."""
    if ledger is None:
        return _no_claim(configuration)
    clients = tuple(_client(ledger, name) for name in ledger.clients)
    name = configuration.experiment.victim if configuration.experiment.victim in ledger.clients else ledger.clients[0]
    promise, own = ledger.promises[name], next(client for client in clients if client.client == name)
    proved = is_proved(promise)
    limit = roc_limit(LIMIT_FPR, own.spent if proved else None, promise.delta)
    return Claim(
        mechanism=mechanism_sentence(promise.facts),
        accountant=promise.accountant,
        unit=f"one {promise.neighbours.unit}, of one client",
        neighbours=NEIGHBOURS[promise.neighbours],
        client=name,
        clients=clients,
        promised=own.epsilon,
        epsilon=own.spent if proved else None,
        delta=promise.delta,
        limit_fpr=LIMIT_FPR,
        limit_tpr=limit,
        meaning="" if faults(promise) else f"{GUARANTEE} {_meaning(name, limit)}",
        guessing=tuple(_guessing(clients)),
        copies=tuple(_held(run, ledger.promises)),
        facts=(*fact_rows(promise.facts), *_paid_facts(ledger, name)),
        warnings=(*described(configuration).cautions, *_warnings(promise, clients), *_void(ledger.promises, name)),
        trusted=trusted(configuration, promised=True),
        released=(*released(configuration), *([FIGURES] if ledger.extras(name) else [])),
        not_covered=not_covered(configuration, promise.facts.names),
    )


def is_proved(promise: Promise) -> bool:
    """Whether the ledger's epsilon is an upper bound. A research seed leaves the number for study, and a warning."""
    return all(fault.kind is FaultKind.RESEARCH_SEED for fault in faults(promise))


def _no_claim(configuration: Configuration) -> Claim:
    return Claim(
        mechanism=NO_PROMISE,
        accountant="",
        unit="",
        neighbours="",
        client=configuration.experiment.victim,
        clients=(),
        promised=None,
        epsilon=None,
        delta=None,
        limit_fpr=LIMIT_FPR,
        limit_tpr=1.0,
        meaning="",
        guessing=(),
        copies=(),
        facts=(),
        warnings=(),
        trusted=trusted(configuration, promised=False),
        released=released(configuration),
        not_covered=("Everything: there is no promise.",),
    )


def _client(ledger: Ledger, name: str) -> ClientClaim:
    promise, promised, spent = ledger.promises[name], ledger.promised(name), ledger.spent(name)
    within = math.isfinite(spent) and (promised is None or spent <= promised * (1 + 1e-9))
    guess = None
    if is_proved(promise):
        guess = guess_worth(ledger.charges(name), spent, promise.delta, adaptive=promise.is_paid(Payment.WHOLE_BUDGET))
    return ClientClaim(name, promised, promise.delta, spent if math.isfinite(spent) else None, within, guess)


def _guessing(clients: Iterable[ClientClaim]) -> Iterator[str]:
    """What a guess is worth; clients with the same chances share a line."""
    alike: dict[str, list[str]] = {}
    for client in clients:
        if client.guess:
            alike.setdefault(guess_words(client.guess), []).append(client.client)
    for words, names in alike.items():
        yield f"{', '.join(names)}: {words}"


def _meaning(client: str, limit: float) -> str:
    """The claim in terms of what an attacker can do."""
    reach = (
        f"By proof, no attacker who sees everything that {client} sends and accuses {percent(LIMIT_FPR)} of the "
        f"non-members wrongly finds more than {100 * limit:.4g} % of the members."
    )
    if limit <= MUCH:
        return reach
    return f"{reach} This epsilon is large and allows much: judge it together with the attacks and the audit."


def _held(run: Path, promises: Mapping[str, Promise]) -> Iterator[HeldCopy]:
    """One entry for each client whose release holds some of its graph."""
    for client, found in holdings(run, promises).items():
        yield HeldCopy(client, found.believed, found.true, found.precision, found.share, found.words)


def _paid_facts(ledger: Ledger, name: str) -> tuple[tuple[str, str], ...]:
    """What figures cost, of the budget that the page shows."""
    paid = math.fsum(extra.epsilon for extra in ledger.extras(name))
    return (("paid figures", f"epsilon {paid:g}, on top of the budget of the rounds"),) if paid else ()


def _warnings(promise: Promise, clients: tuple[ClientClaim, ...]) -> tuple[str, ...]:
    from fedkge.accounting.deltas import large_epsilon  # noqa: PLC0415 (heavy)

    found = [warning] if (warning := large_epsilon(promise.epsilon)) else []
    found += [f"No promise holds: {fault_words(fault)}." for fault in faults(promise)]
    over = [f"{client.client} ({epsilon(client.spent)})" for client in clients if not client.within]
    if over:
        found.append(f"Clients spent more than the promised {epsilon(promise.epsilon)}: {', '.join(over)}.")
    if promise.epsilon is None:
        found.append(
            f"No budget was set. The claim is the epsilon that the ledger has counted at delta {small(promise.delta)}."
        )
    return tuple(found)


def gather_paid(ledger: Ledger | None) -> tuple[PaidFigure, ...]:
    """The figures that were released and paid for."""
    if ledger is None:
        return ()
    from fedkge.accounting.figures import kept_metrics  # noqa: PLC0415 (heavy)

    return tuple(
        PaidFigure(
            client=one.client,
            split=one.split,
            round=one.round,
            epsilon=one.mean.epsilon,
            mrr=one.mean.value,
            triples=max(0, one.mean.number),
            deviation=one.mean.deviation,
        )
        for one in kept_metrics(ledger)
    )


def _void(promises: Mapping[str, Promise], shown: str) -> Iterator[str]:
    """Why promises of other clients are no guarantee, where that is not said of the shown one already."""
    for client, promise in promises.items():
        found = [fault for fault in faults(promise) if fault not in faults(promises[shown])]
        if found:
            yield f"No promise of {client} holds: {'; '.join(map(fault_words, found))}."


def gather_spending(ledger: Ledger | None, configuration: Configuration) -> tuple[Spending, ...]:
    """Epsilon of the victim after some of its rounds; constant where only the whole budget is a guarantee."""
    if ledger is None:
        return ()
    from fedkge.accounting.accountants import merged  # noqa: PLC0415 (heavy)

    name = configuration.experiment.victim if configuration.experiment.victim in ledger.clients else ledger.clients[0]
    promise, entries = ledger.promises[name], _in_rounds(ledger.by_round(name))
    accountant = make_accountant(promise.accountant)
    before = [charge for once in ledger.once(name).values() for charge in once.charges]
    rounds, spent = [], []
    for place in _places(len(entries)):
        charges = merged((*before, *(charge for _, entry in entries[: place + 1] for charge in entry.charges)))
        filtered = promise.is_paid(Payment.WHOLE_BUDGET) and promise.epsilon is not None
        value = promise.epsilon if filtered else accountant.epsilon(charges, promise.delta)
        if value is not None and math.isfinite(value):
            rounds.append(entries[place][0])
            spent.append(value)
    return (Spending(name, tuple(rounds), tuple(spent)),) if rounds else ()


def _in_rounds(entries: tuple[Entry, ...]) -> list[tuple[int, Entry]]:
    """Entries with their rounds; a torn line, which has none, belongs to the round before it."""
    found, last = [], 0
    for entry in entries:
        last = entry.round if entry.round is not None else last
        found.append((last, entry))
    return found


def _places(count: int) -> list[int]:
    """Up to `POINTS` places, spread over all, the last always among them.

    >>> _places(3), _places(0), _places(100)[-3:]
    ([0, 1, 2], [], [71, 85, 99])
    """
    if count <= POINTS:
        return list(range(count))
    return [round(place * (count - 1) / (POINTS - 1)) for place in range(POINTS)]
