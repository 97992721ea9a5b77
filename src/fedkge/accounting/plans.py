"""What a training would cost, before there is one: mechanism, sizes, noise and rounds as one value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fedkge.accounting.accountants import check_delta, merged
from fedkge.base.errors import ConfigurationError
from fedkge.base.registry import look_up
from fedkge.mechanisms.events import Charge, Event, PublishedTest, SampledGaussian, SampledPair, SampledTest

MOST_FAILURE = 0.5
"""A test that passes wrongly more often than this is none."""


@dataclass(frozen=True)
class CostPlan:
    """Rounds of noisy steps on one client.

    `triples` is the public size of the client's graph, `steps` are those of one round. The noise of round k is the
    first round's times decay ** (k - 1). `selection_share` is adafest's; `gap`, `test` and `failure` are those of
    propose, test, release: by default as noisy as the gradient, and half of delta for all failures together.

    >>> plan = CostPlan("dense", batch=4096, triples=90_000, steps=10, rounds=2, decay=0.5)
    >>> [(charge.steps, charge.event.multiplier) for charge in plan.charges(noise=2)]
    [(10, 2.0), (10, 1.0)]
    """

    mechanism: str
    batch: int
    triples: int
    steps: int
    rounds: int = 1
    delta: float = 1e-5
    decay: float = 1.0
    selection_share: float = 0.2
    gap: float | None = None
    test: float | None = None
    failure: float | None = None
    passed: float = 1.0

    def __post_init__(self) -> None:
        look_up(EVENTS_OF, self.mechanism, "mechanism")
        check_delta(self.delta)
        for name in ("batch", "triples", "steps", "rounds"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name}: expected at least 1, got {getattr(self, name)}")
        for name in ("gap", "test", "failure"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigurationError(f"{name}: expected a number above 0, got {getattr(self, name)}")
        if self.failure is not None and self.failure > MOST_FAILURE:
            raise ConfigurationError(f"delta_t: expected a chance of at most {MOST_FAILURE}, got {self.failure}")
        if not 0 < self.decay <= 1 or not 0 < self.selection_share < 1:
            raise ConfigurationError(
                f"expected 0 < decay <= 1 and 0 < selection share < 1, got {self.decay} and {self.selection_share}"
            )

    @property
    def rate(self) -> float:
        """The probability that a triple is in a batch; 1 if the batch is larger than the data."""
        return min(1.0, self.batch / self.triples)

    @property
    def delta_t(self) -> float:
        """How often a test may pass wrongly."""
        return self.failure or min(MOST_FAILURE, self.delta / (2 * self.rate * self.steps * self.rounds))

    def event(self, noise: float) -> Event:
        """One step with this noise."""
        return EVENTS_OF[self.mechanism](self, noise)

    def by_round(self, noise: float) -> list[Charge]:
        """The charges of each round; `noise` is the noise multiplier of the first round."""
        return [Charge(self.event(noise * self.decay**number), self.steps) for number in range(self.rounds)]

    def charges(self, noise: float) -> tuple[Charge, ...]:
        """The charges of all rounds."""
        return merged(self.by_round(noise))


def _dense(plan: CostPlan, noise: float) -> Event:
    return SampledGaussian(plan.rate, noise)


def _adafest(plan: CostPlan, noise: float) -> Event:
    share = plan.selection_share
    return SampledPair(plan.rate, selection=noise / math.sqrt(share), gradient=noise / math.sqrt(1 - share))


def _ptr(plan: CostPlan, noise: float) -> Event:
    return SampledTest(plan.rate, plan.gap or noise, plan.test or noise, noise, plan.delta_t)


def _published(plan: CostPlan, noise: float) -> Event:
    return PublishedTest(plan.rate, plan.gap or noise, plan.test or noise, noise, plan.delta_t, plan.passed)


EVENTS_OF: dict[str, Callable[[CostPlan, float], Event]] = {
    "dense": _dense,
    "adafest": _adafest,
    "ptr": _ptr,
    "published": _published,
}
"""One step of each mechanism; a new one is a function and a line here."""
