"""A client's promise, made before it spends anything, and the check that a round keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from fedkge.accounting.accountants import ACCOUNTANTS, NEIGHBOURS, check_delta, merged
from fedkge.accounting.facts import UNKNOWN, Facts, Neighbours, Payment, Plan
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.base.registry import look_up
from fedkge.mechanisms.events import Charge, Names

COSTLY_WHEN_LARGE = ("rate", "failure", "passed", "epsilon")
"""The fields of events that cost more the larger they are; of all others, which are noise, the smaller."""


@dataclass(frozen=True)
class Promise:
    """One client's promise for one run.

    `epsilon` is the budget (None: spending is counted, not limited), `largest_round` the most that one round may
    spend. `facts` say what the numbers rest on; `validity.faults` says whether they are a guarantee.

    >>> promise = Promise("client-0", delta=1e-5, epsilon=8, facts=Facts(defence="recommended"))
    >>> Promise.of_record(promise.record()) == promise
    True
    """

    client: str
    delta: float
    epsilon: float | None = None
    accountant: str = "pld"
    neighbours: Neighbours = NEIGHBOURS
    largest_round: tuple[Charge, ...] = ()
    facts: Facts = UNKNOWN

    def __post_init__(self) -> None:
        check_delta(self.delta)
        look_up(ACCOUNTANTS, self.accountant, "accountant")
        if self.epsilon is not None and not self.epsilon > 0:
            raise ConfigurationError(f"epsilon: expected a budget above 0, got {self.epsilon}")
        try:
            Facts.of_record(self.facts.record())
            object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        except ValueError as error:
            raise ConfigurationError(f"facts of a promise: {error}") from error
        object.__setattr__(self, "largest_round", merged(self.largest_round))

    @property
    def plan(self) -> Plan:
        """What was planned before the first round; an error where the promise does not say."""
        if self.facts.plan is None:
            raise PrivacyError(
                f"{self.client}: expected a promise with rounds, triples and noise, got one without them; start a new "
                "run (`fedkge account` adds the two up)"
            )
        return self.facts.plan

    def is_paid(self, payment: Payment) -> bool:
        """Whether the charges of its rounds have this meaning; False where the promise does not say.

        >>> Promise("client-0", delta=1e-5).is_paid(Payment.WHOLE_BUDGET)
        False
        """
        return self.facts.plan is not None and self.facts.plan.payment is payment

    def record(self) -> dict[str, Any]:
        """The promise as plain values, for JSON."""
        values = {**self.__dict__, "neighbours": self.neighbours.value, "facts": self.facts.record()}
        return {**values, "largest_round": [charge.record() for charge in self.largest_round]}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Promise:
        """The promise that `record` was made from; a ValueError where it holds anything else."""
        try:
            line = msgspec.convert({key: value for key, value in record.items() if key != "kind"}, _Line)
            largest = tuple(Charge.of_record(charge) for charge in line.largest_round)
            return cls(line.client, line.delta, line.epsilon, line.accountant, line.neighbours, largest, line.facts)
        except (msgspec.ValidationError, ConfigurationError) as error:
            raise ValueError(str(error)) from error


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A promise in a line of a ledger: nothing may be missing, and nothing else be there."""

    client: str
    delta: float
    epsilon: float | None
    accountant: str
    neighbours: Neighbours
    largest_round: tuple[dict[str, Any], ...]
    facts: Facts


def covers(most: Sequence[Charge], charges: Sequence[Charge]) -> bool:
    """Whether every charge finds room in one of `most`: the same kind of event, at least as costly, and steps enough.

    >>> from fedkge.mechanisms.events import SampledGaussian
    >>> most = [Charge(SampledGaussian(0.1, 1), 10)]
    >>> covers(most, [Charge(SampledGaussian(0.1, 2), 4), Charge(SampledGaussian(0.05, 1), 6)])
    True
    >>> covers(most, [Charge(SampledGaussian(0.1, 0.9), 1)])
    False
    """
    room = [charge.steps for charge in most]
    for charge in charges:
        left = charge.steps
        for place, larger in enumerate(most):
            taken = min(left, room[place]) if _at_least(larger, charge) else 0
            room[place] -= taken
            left -= taken
        if left:
            return False
    return True


def _at_least(larger: Charge, charge: Charge) -> bool:
    if type(larger.event) is not type(charge.event):
        return False
    if isinstance(larger.event, Names) and isinstance(charge.event, Names):
        # Less noise costs more epsilon and exposes fewer names: no threshold alone says which costs more in all.
        return larger.event.scale <= charge.event.scale and larger.event.exposure >= charge.event.exposure
    most, values = asdict(larger.event), asdict(charge.event)
    return all(values[key] <= most[key] if key in COSTLY_WHEN_LARGE else values[key] >= most[key] for key in values)
