"""What a mechanism costs, as values: an accountant needs nothing else, and a ledger writes nothing else.

Every number is a Python float (dp-accounting counts only the first of several Gaussians when one is an integer or a
float32), which `Charge` and the events see to themselves. Neighbours differ by one triple; sampling is Poisson.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias

from fedkge.base.errors import ConfigurationError


class _Numbers:
    """Turns every field of a frozen dataclass into a Python float, and refuses what is not a positive number, rates
    above 1, and chances of failure from 1 on, which would make any test pass.
    """

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            number = float(getattr(self, field.name))
            if not 0 < number < float("inf"):
                raise ConfigurationError(f"{type(self).__name__}: expected {field.name} above 0, got {number}")
            object.__setattr__(self, field.name, number)
        if getattr(self, "rate", 1.0) > 1:
            raise ConfigurationError(f"{type(self).__name__}: expected a sampling rate of at most 1, got {self.rate}")  # type: ignore[attr-defined]
        if not getattr(self, "failure", 0.0) < 1:
            raise ConfigurationError(f"{type(self).__name__}: expected a chance of failure below 1, got {self.failure}")  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Gaussian(_Numbers):
    """One Gaussian release over the whole data; `multiplier` is its deviation over its sensitivity."""

    multiplier: float


class _Counted(_Numbers):
    """Counts with two-sided geometric noise. What one triple changes is known by the event alone: noise is calibrated
    from here, and accountants count from here.
    """

    cells: ClassVar[int]
    """How many counts a triple changes, each by one."""

    @property
    def sensitivity(self) -> int:
        """The change by one triple, summed over all counts."""
        return self.cells

    @classmethod
    def scale_for(cls, epsilon: float) -> float:
        """The scale of the noise that makes all counts together cost this epsilon.

        >>> Geometric.scale_for(4.0), Size.scale_for(0.05)
        (0.5, 20.0)
        """
        return cls.cells / epsilon


@dataclass(frozen=True)
class Geometric(_Counted):
    """Counts with two-sided geometric noise of `scale`, over the whole data: a triple changes two of them by one each
    (docs/proofs/counts.md).
    """

    cells: ClassVar[int] = 2
    scale: float

    @property
    def epsilon(self) -> float:
        """What the counts cost together.

        >>> Geometric(Geometric.scale_for(4.0)).epsilon
        4.0
        """
        return self.sensitivity / self.scale


@dataclass(frozen=True)
class Size(_Counted):
    """The number of triples with two-sided geometric noise of `scale`: a triple changes it by one
    (docs/proofs/size.md).
    """

    cells: ClassVar[int] = 1
    scale: float

    @property
    def deviation(self) -> float:
        """The noise's standard deviation.

        >>> round(Size(20).deviation, 1)
        28.3
        """
        return float(1 / (2**0.5 * math.sinh(0.5 / self.scale)))


@dataclass(frozen=True)
class Names(_Counted):
    """Names whose noisy number of mentions reaches `threshold`, noise of `scale`: a triple mentions two of them
    (docs/proofs/names.md).
    """

    cells: ClassVar[int] = 2
    scale: float
    threshold: float

    @property
    def exposure(self) -> float:
        """The chance that a name passes which one triple alone mentions, for both of its names: a part of delta.

        >>> Names(scale=1, threshold=14).exposure < 5e-6
        True
        """
        return self.cells * math.exp(-(self.threshold - 1) / self.scale) / (1 + math.exp(-1 / self.scale))


@dataclass(frozen=True)
class Responses(_Numbers):
    """Answers about possible triples by randomised response, over the whole data: a triple changes one of them
    (docs/proofs/copy.md). `epsilon` is that of one answer, and so of all of them.
    """

    sensitivity: ClassVar[int] = 1
    """How many answers depend on one triple."""
    epsilon: float


@dataclass(frozen=True)
class Figure(Responses):
    """A figure about held-out triples: any release without a delta costs at most one randomised response
    (docs/proofs/metrics.md). It is no answer about a triple.
    """


@dataclass(frozen=True)
class SampledGaussian(_Numbers):
    """A Gaussian release over a Poisson sample at `rate`: one step of DPSGD (docs/proofs/dense.md)."""

    rate: float
    multiplier: float


@dataclass(frozen=True)
class SampledPair(_Numbers):
    """Two Gaussian releases over one and the same Poisson sample: selection, then gradient (docs/proofs/adafest.md).

    >>> round(SampledPair(0.1, selection=2, gradient=2).multiplier, 4)
    1.4142
    """

    rate: float
    selection: float
    gradient: float

    @property
    def multiplier(self) -> float:
        """The one Gaussian that dominates the pair; it is amplified once."""
        return float((self.selection**-2 + self.gradient**-2) ** -0.5)


@dataclass(frozen=True)
class SampledTest(_Numbers):
    """Propose, test, release over one Poisson sample, with sound constants (docs/proofs/ptr.md).

    `gap` is sigma_r of the private arg max, `test` sigma_p, `gradient` sigma, `failure` delta_t. Charged in full
    whether the test passes or not.
    """

    range_of_unit_gap: ClassVar[float] = 1.5
    """`Clip.range_sensitivity` over `Clip.guess_scale`, whatever the clip."""
    rate: float
    gap: float
    test: float
    gradient: float
    failure: float

    @property
    def range(self) -> float:
        """The bounded range of the arg max: how far one triple moves two of its log odds against each other."""
        return self.range_of_unit_gap / self.gap


@dataclass(frozen=True)
class PublishedTest(_Numbers):
    """The same step by the formulas that the paper prints, which are not sound: only to reproduce its numbers.

    `passed` counts the steps of this charge whose test passed, as a share between 0 (none) and 1 (all).
    """

    rate: float
    gap: float
    test: float
    gradient: float
    failure: float
    passed: float

    def __post_init__(self) -> None:
        share = float(self.passed)
        if not 0 <= share <= 1:
            raise ConfigurationError(f"PublishedTest: expected a share of passed tests from 0 to 1, got {share}")
        object.__setattr__(self, "passed", share or 1.0)
        _Numbers.__post_init__(self)
        object.__setattr__(self, "passed", share)


@dataclass(frozen=True)
class PublishedGaussian(_Numbers):
    """A step of the paper's baseline by the formula that it prints: relations have no noise, nothing is guaranteed."""

    rate: float
    multiplier: float


Event: TypeAlias = (
    Gaussian
    | Geometric
    | Size
    | Names
    | Responses
    | Figure
    | SampledGaussian
    | SampledPair
    | SampledTest
    | PublishedTest
    | PublishedGaussian
)
EVENTS: dict[str, type[Any]] = {
    "gaussian": Gaussian,
    "geometric": Geometric,
    "size": Size,
    "names": Names,
    "responses": Responses,
    "figure": Figure,
    "sampled-gaussian": SampledGaussian,
    "sampled-pair": SampledPair,
    "sampled-test": SampledTest,
    "published-test": PublishedTest,
    "published-gaussian": PublishedGaussian,
}


@dataclass(frozen=True)
class Charge:
    """So many times the same event.

    >>> charge = Charge(SampledGaussian(rate=0.1, multiplier=1), steps=3)
    >>> Charge.of_record(charge.record()) == charge
    True
    """

    event: Event
    steps: int = 1

    def record(self) -> dict[str, Any]:
        """The charge as plain values, for JSON."""
        kind = next(name for name, event in EVENTS.items() if type(self.event) is event)
        return {"event": kind, **asdict(self.event), "steps": self.steps}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Charge:
        """The charge that `record` was made from; a ConfigurationError where it is anything else.

        >>> Charge.of_record({"event": "gaussian", "multiplier": 1.0, "steps": -1})
        Traceback (most recent call last):
        fedkge.base.errors.ConfigurationError: steps of a charge: expected a whole number >= 0, got -1
        """
        values = dict(record)
        kind, steps = values.pop("event", None), values.pop("steps", None)
        if not isinstance(kind, str) or kind not in EVENTS:
            raise ConfigurationError(f"unknown privacy event {kind!r}: known are {', '.join(EVENTS)}")
        if type(steps) is not int or steps < 0:
            raise ConfigurationError(f"steps of a charge: expected a whole number >= 0, got {steps!r}")
        expected = [field.name for field in fields(EVENTS[kind])]
        if set(values) != set(expected) or not all(type(value) in (int, float) for value in values.values()):
            raise ConfigurationError(f"event {kind}: expected the numbers {', '.join(expected)}, got {values!r:.200}")
        return cls(EVENTS[kind](**values), steps)
