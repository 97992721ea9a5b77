"""How the noise changes from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol

from fedkge.base.errors import ConfigurationError


class Schedule(Protocol):
    """The noise multiplier of each round, from a base that the budget is calibrated to. Rounds count from 1."""

    @property
    def adaptive(self) -> bool:
        """Whether a multiplier depends on what was released before: then only a Rényi filter keeps the budget."""
        ...

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:
        """The multiplier of this round; `history` holds the public validation MRRs up to now, first to last."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same noise in every round.

    >>> Constant(1.5).multiplier(7)
    1.5
    """

    base: float

    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self.base)

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002 - always the same
        """The base."""
        return self.base


@dataclass(frozen=True, slots=True)
class GeometricDecay:
    """Less noise by the factor `decay` after every `interval_rounds`, fixed before training.

    >>> decay = GeometricDecay(2.0, decay=0.5, interval_rounds=3)
    >>> [decay.multiplier(number) for number in (1, 3, 4, 7)]
    [2.0, 2.0, 1.0, 0.5]
    """

    base: float
    decay: float = 0.95
    interval_rounds: int = 1

    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self.base, self.decay)
        if self.interval_rounds < 1:
            raise ConfigurationError(f"expected an interval of at least one round, got {self.interval_rounds}")

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002 - preset
        """The base times the decay so far."""
        return float(self.base * self.decay ** ((round_number - 1) // self.interval_rounds))


@dataclass(frozen=True, slots=True)
class ByValidation:
    """Less noise by the factor `decay` (eta) after each validation that gained less than `least_gain` (Delta).

    The validation must be on public triples. Even so the embeddings that it scores were trained on private ones, so the
    rule depends on earlier releases: `adaptive`.

    >>> ByValidation(2.0, decay=0.5).multiplier(4, history=[0.10, 0.15, 0.1501])
    1.0
    """

    base: float
    decay: float = 0.95
    least_gain: float = 0.001

    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.base, self.decay)

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002 - the history tells
        """The base times the decay for every validation that gained too little; the first has nothing to beat."""
        gains = (after - before for before, after in pairwise(history))
        return float(self.base * self.decay ** sum(gain < self.least_gain for gain in gains))


def _check(base: float, decay: float = 1.0) -> None:
    if not (0 < base < float("inf") and 0 < decay <= 1):
        raise ConfigurationError(f"expected a positive noise multiplier and a decay up to 1, got {base} and {decay}")
