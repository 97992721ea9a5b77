"""How the noise changes from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol

from fedkge.base.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """What a schedule is built from: options, all of them public."""

    base: float
    decay: float
    least_gain: float
    validation_rounds: int
    """A validation follows every so many rounds; 0 means never."""


class Schedule(Protocol):
    """The noise multiplier of each round, from a base that the budget is calibrated to. Rounds count from 1."""

    name: ClassVar[str]
    """The name of its option value."""
    adaptive: ClassVar[bool]
    """Whether a multiplier depends on public validations of what was released before: then only a Rényi filter keeps
    the budget.
    """

    @classmethod
    def build(cls, settings: ScheduleSettings) -> Schedule:
        """The schedule from its options."""
        ...

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:
        """The multiplier of this round; `history` holds the public validation MRRs up to now, first to last."""
        ...

    def least(self, round_number: int) -> float:
        """The least multiplier that this round may have, whatever validations say."""
        return self.multiplier(round_number)


@dataclass(frozen=True, slots=True)
class Constant(Schedule):
    """The same noise in every round.

    >>> Constant(1.5).multiplier(7)
    1.5
    """

    base: float

    name: ClassVar[str] = "constant"
    adaptive: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: ScheduleSettings) -> Constant:
        """From the options that it reads."""
        return cls(settings.base)

    def __post_init__(self) -> None:
        _check(self.base)

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002 - always the same
        """The base."""
        return self.base


@dataclass(frozen=True, slots=True)
class GeometricDecay(Schedule):
    """Less noise by the factor `decay` after every `interval_rounds`, fixed before training.

    >>> decay = GeometricDecay(2.0, decay=0.5, interval_rounds=3)
    >>> [decay.multiplier(number) for number in (1, 3, 4, 7)]
    [2.0, 2.0, 1.0, 0.5]
    """

    base: float
    decay: float = 0.95
    interval_rounds: int = 1

    name: ClassVar[str] = "decay"
    adaptive: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: ScheduleSettings) -> GeometricDecay:
        """From the options that it reads."""
        return cls(settings.base, settings.decay)

    def __post_init__(self) -> None:
        _check(self.base, self.decay)
        if self.interval_rounds < 1:
            raise ConfigurationError(f"expected an interval of at least one round, got {self.interval_rounds}")

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002 - preset
        """The base times the decay so far."""
        return float(self.base * self.decay ** ((round_number - 1) // self.interval_rounds))


@dataclass(frozen=True, slots=True)
class ByValidation(Schedule):
    """Less noise by the factor `decay` (eta) after each validation that gained less than `least_gain` (Delta).

    The validation must be on public triples. Even so the embeddings that it scores were trained on private ones, so the
    rule depends on earlier releases: `adaptive`.

    >>> ByValidation(2.0, decay=0.5).multiplier(4, history=[0.10, 0.15, 0.1501])
    1.0
    """

    base: float
    decay: float = 0.95
    least_gain: float = 0.001
    validation_rounds: int = 1
    """A validation follows every so many rounds."""

    name: ClassVar[str] = "validation"
    adaptive: ClassVar[bool] = True

    @classmethod
    def build(cls, settings: ScheduleSettings) -> ByValidation:
        """From the options that it reads."""
        return cls(settings.base, settings.decay, settings.least_gain, settings.validation_rounds)

    def __post_init__(self) -> None:
        _check(self.base, self.decay)

    def multiplier(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002 - the history tells
        """The base times the decay for every validation that gained too little; the first has nothing to beat."""
        gains = (after - before for before, after in pairwise(history))
        return float(self.base * self.decay ** sum(gain < self.least_gain for gain in gains))

    def least(self, round_number: int) -> float:
        """One decay for every validation so far but the first."""
        validations = (round_number - 1) // max(1, self.validation_rounds)
        return float(self.base * self.decay ** max(0, validations - 1))


def _check(base: float, decay: float = 1.0) -> None:
    if not (0 < base < float("inf") and 0 < decay <= 1):
        raise ConfigurationError(f"expected a positive noise multiplier and a decay up to 1, got {base} and {decay}")
