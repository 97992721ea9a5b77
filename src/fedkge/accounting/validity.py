"""Whether a promise is a guarantee. It is one only if every fact that it rests on is known and sound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fedkge.accounting.accountants import NEIGHBOURS, make_accountant
from fedkge.accounting.facts import Advance, Described, Facts, NoisyCopy, NoisySteps, Payment, SecretNoise
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.promises import Promise
from fedkge.mechanisms import SCHEDULES, SELECTIONS


class FaultKind(StrEnum):
    """Why a promise is no guarantee. `report.promise_words` has a sentence for each."""

    MISSING_FACT = "missing-fact"
    RESEARCH_SEED = "research-seed"
    UNKNOWN_SELECTION = "unknown-selection"
    PUBLISHED_SELECTION = "published-selection"
    UNKNOWN_SCHEDULE = "unknown-schedule"
    WRONG_PAYMENT = "wrong-payment"
    NO_BUDGET = "no-budget"
    UNSOUND_ACCOUNTANT = "unsound-accountant"
    OTHER_NEIGHBOURS = "other-neighbours"
    NO_PROOF = "no-proof"


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason, and what it is about.

    >>> str(Fault(FaultKind.MISSING_FACT, "names"))
    'missing-fact: names'
    """

    kind: FaultKind
    about: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.about}" if self.about else self.kind.value


def faults(promise: Promise) -> tuple[Fault, ...]:
    """Why nothing is promised, whatever the numbers say; empty where the promise holds.

    Guarantee: a fact that is missing, and one that this version does not know, is a fault.

    >>> [str(fault) for fault in faults(Promise("client-0", delta=1e-5, facts=Facts(noise_source=SecretNoise())))]
    ['missing-fact: defence, mechanism, plan, names, start']
    """
    return tuple(_faults(promise))


def _faults(promise: Promise) -> Iterator[Fault]:
    facts = promise.facts
    if missing := _missing(promise):
        yield Fault(FaultKind.MISSING_FACT, ", ".join(missing))
    if facts.noise_source is not None and not isinstance(facts.noise_source, SecretNoise):
        yield Fault(FaultKind.RESEARCH_SEED)
    if isinstance(facts.mechanism, NoisySteps):
        yield from _of_steps(facts.mechanism, facts)
    if isinstance(facts.mechanism, NoisyCopy) and facts.plan and facts.plan.payment is not Payment.FIRST_ROUND:
        yield Fault(FaultKind.WRONG_PAYMENT, facts.plan.payment)
    if promise.is_paid(Payment.WHOLE_BUDGET) and promise.epsilon is None:
        yield Fault(FaultKind.NO_BUDGET)
    if isinstance(facts.mechanism, Described) and not facts.mechanism.proof.strip():
        yield Fault(FaultKind.NO_PROOF, facts.mechanism.name)
    if not make_accountant(promise.accountant).sound:
        yield Fault(FaultKind.UNSOUND_ACCOUNTANT, promise.accountant)
    if promise.neighbours is not NEIGHBOURS:
        yield Fault(FaultKind.OTHER_NEIGHBOURS, promise.neighbours)


def _missing(promise: Promise) -> list[str]:
    """The facts that the promise should say and does not; before the promise there is no plan, start or round."""
    facts = promise.facts
    before = isinstance(facts.mechanism, Advance) and not promise.largest_round
    optional = {"data", *(("plan", "start") if before else ())}
    return [name for name in facts.__struct_fields__ if getattr(facts, name) is None and name not in optional]


def _of_steps(steps: NoisySteps, facts: Facts) -> Iterator[Fault]:
    selection, schedule = SELECTIONS.get(steps.selection), SCHEDULES.get(steps.schedule)
    if selection is None:
        yield Fault(FaultKind.UNKNOWN_SELECTION, steps.selection)
    elif not selection.is_private:
        yield Fault(FaultKind.PUBLISHED_SELECTION, steps.selection)
    if schedule is None:
        yield Fault(FaultKind.UNKNOWN_SCHEDULE, steps.schedule)
    elif facts.plan and facts.plan.payment is not (Payment.WHOLE_BUDGET if schedule.adaptive else Payment.EACH_ROUND):
        yield Fault(FaultKind.WRONG_PAYMENT, facts.plan.payment)


def other_rounds(ledger: Ledger, client: str) -> tuple[int, int] | None:
    """How many rounds the client has paid for, and how many were planned; None if that makes no difference.

    The spent epsilon is a guarantee only if the number of rounds was fixed beforehand. If the client stopped early or
    continued after a look at results, only the budget is a guarantee.
    """
    plan = ledger.promises[client].facts.plan
    paid = len({entry.round for entry in ledger.by_round(client) if entry.round is not None})
    if plan is None or plan.rounds == paid or plan.payment is not Payment.EACH_ROUND:
        return None
    return paid, plan.rounds
