"""What a client promises before it spends anything, and whether a round keeps to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fedkge.accounting.accountants import ACCOUNTANTS, NEIGHBOURS, check_delta, merged
from fedkge.base.errors import ConfigurationError
from fedkge.base.registry import look_up
from fedkge.mechanisms.events import Charge, Names

UNIT = "triple"
COPIED = "copy"
"""The fact of a promise that says how a graph is copied once: rounds after that cost nothing, however many."""

COSTLY_WHEN_LARGE = ("rate", "failure", "passed", "epsilon")
"""The fields of events that cost more the larger they are; of all others, which are noise, the smaller."""


@dataclass(frozen=True)
class Promise:
    """One client's promise for one run.

    `epsilon` is the budget (None: spending is counted, not limited), `largest_round` the most that one round may
    spend, and `facts` whatever else a reader of the ledger should know: `data`, a keyed digest by which its
    holder recognises runs on the same triples, batch, steps, clipping, noise.

    >>> promise = Promise("client-0", delta=1e-5, epsilon=8, largest_round=(), facts={"batch": 4096})
    >>> Promise.of_record(promise.record()) == promise
    True
    """

    client: str
    delta: float
    epsilon: float | None = None
    accountant: str = "pld"
    neighbours: str = NEIGHBOURS
    unit: str = UNIT
    largest_round: tuple[Charge, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_delta(self.delta)
        look_up(ACCOUNTANTS, self.accountant, "accountant")
        if self.epsilon is not None and not self.epsilon > 0:
            raise ConfigurationError(f"epsilon: expected a budget above 0, got {self.epsilon}")
        object.__setattr__(self, "largest_round", merged(self.largest_round))
        object.__setattr__(self, "facts", json.loads(json.dumps(dict(self.facts))))

    @property
    def summary(self) -> str:
        """The promise in a few words."""
        budget = "epsilon without limit" if self.epsilon is None else f"epsilon {self.epsilon:g}"
        facts = "".join(f", {key} {value}" for key, value in self.facts.items())
        return f"{budget} at delta {self.delta:g} ({self.accountant}{facts})"

    def record(self) -> dict[str, Any]:
        """The promise as plain values, for JSON."""
        values = {**self.__dict__, "facts": dict(self.facts)}
        return {**values, "largest_round": [charge.record() for charge in self.largest_round]}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Promise:
        """The promise that `record` was made from."""
        values = {key: value for key, value in record.items() if key != "kind"}
        largest = tuple(Charge.of_record(charge) for charge in values.pop("largest_round"))
        return cls(**values, largest_round=largest)


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
