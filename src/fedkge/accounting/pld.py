"""Epsilon by privacy-loss distributions: the tightest bound here, numerical and pessimistic.

Distributions come from dp-accounting and lie on a grid of losses. Whatever the grid, the result is an upper bound
(connect-the-dots rounds against us), so a coarser one is chosen where a fine one would take too long: for very small
noise, for many different events (a decaying schedule), and for very large totals. That moves epsilon up by well under
a percent. Proofs: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from dp_accounting.pld import privacy_loss_distribution

from fedkge.accounting.accountants import check_delta, merged
from fedkge.accounting.beforehand import apart
from fedkge.accounting.failures import failure_mass
from fedkge.accounting.privacy_profiles import sampled_gaussian_distribution, sampled_test_distribution
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import (
    Charge,
    Event,
    Gaussian,
    Geometric,
    Names,
    PublishedGaussian,
    PublishedTest,
    Responses,
    SampledGaussian,
    SampledPair,
    SampledTest,
    Size,
)

Distribution: TypeAlias = Any
"""A PrivacyLossDistribution of dp-accounting, which carries no types."""

FINEST_INTERVAL = 1e-4
MOST_POINTS = 2**17
"""Of the grid of one event."""
MOST_POINTS_COMPOSED = 2**22
FEW_EVENTS = 8
"""So many different events are composed on the finest grid."""
TAIL_DEVIATIONS = 10.0
"""How far dp-accounting follows a Gaussian: beyond lies a mass of exp(-50)."""
TRUNCATED_MASS = 1e-15
"""What composing may move to an infinite loss."""


@dataclass(frozen=True)
class PLDAccountant:
    """The default accountant; `interval` is the finest grid it may use, or, unless `adaptive`, the one it uses.

    >>> charges = [Charge(SampledGaussian(rate=4096 / 90000, multiplier=1), steps=1000)]
    >>> round(PLDAccountant().epsilon(charges, delta=1e-5), 2)
    9.85
    """

    interval: float = FINEST_INTERVAL
    adaptive: bool = True
    name: str = "pld"
    sound: bool = True

    def coarse(self) -> PLDAccountant:
        """A quicker one on a coarser grid."""
        return PLDAccountant(8 * self.interval, self.adaptive)

    def on_one_grid(self, charges: Sequence[Charge]) -> PLDAccountant:
        """One that counts every part of these charges on the grid that suits them all, and so reuses its work."""
        counted = _simplified(charges)
        return PLDAccountant(interval_for(counted, self.interval), adaptive=False) if counted else self

    def epsilon(self, charges: Sequence[Charge], delta: float) -> float:
        """What the charges cost together; infinite if one of them guarantees nothing, or its failures exceed delta."""
        before, rest = apart(charges)
        counted = _simplified(rest)
        left = check_delta(delta) - failure_mass(charges)
        if left <= 0 or _unsound(counted):
            return math.inf
        return before + (float(self._losses(counted).get_epsilon_for_delta(left)) if counted else 0.0)

    def delta(self, charges: Sequence[Charge], epsilon: float) -> float:
        """The delta of the charges at this epsilon; at 0 it is the total variation between neighbours.

        >>> round(PLDAccountant().delta([Charge(Responses(1.0))], 0.0), 4)  # tanh(1/2)
        0.4621
        """
        counted = _simplified(charges)
        if not counted:
            return 0.0
        if _unsound(counted):
            return 1.0
        return min(1.0, float(self._losses(counted).get_delta_for_epsilon(epsilon)) + failure_mass(charges))

    def _losses(self, counted: tuple[Charge, ...]) -> Distribution:
        # Where the library bounds tails by moments, those of high orders may overflow to infinity: it takes the least.
        with _LOCK, np.errstate(over="ignore"):
            interval = interval_for(counted, self.interval) if self.adaptive else self.interval
            return composed(counted, interval)


def _unsound(charges: Sequence[Charge]) -> bool:
    return any(isinstance(charge.event, PublishedTest | PublishedGaussian) for charge in charges)


def _simplified(charges: Sequence[Charge]) -> tuple[Charge, ...]:
    """The same cost in fewer events: a pair is one Gaussian, all unsampled Gaussians are one, names are counts."""
    precision, rest = 0.0, []
    for charge in merged(charges):
        event = charge.event
        if isinstance(event, SampledPair):
            event = SampledGaussian(event.rate, event.multiplier)
        if isinstance(event, Names):  # two counts, and a part of delta that is counted as a failure
            event = Geometric(event.scale)
        if isinstance(event, Gaussian) or (isinstance(event, SampledGaussian) and event.rate == 1):
            precision += charge.steps / event.multiplier**2
        else:
            rest.append(Charge(event, charge.steps))
    unsampled = [Charge(Gaussian(precision**-0.5))] if precision else []
    return (*unsampled, *merged(rest))


def interval_for(charges: Sequence[Charge], finest: float = FINEST_INTERVAL) -> float:
    """The grid for these charges: `finest`, or the next power of two times it that keeps the work bounded.

    >>> interval_for([Charge(SampledGaussian(0.1, 1))]), interval_for([Charge(SampledGaussian(0.1, 0.05))])
    (0.0001, 0.0032)
    """
    spans = [_span(charge.event) for charge in charges]
    total = math.fsum(_typical_loss(charge) for charge in charges)
    composed_span = 4 * (total + TAIL_DEVIATIONS * math.sqrt(2 * total))
    wanted = max(
        finest,
        max(spans) / MOST_POINTS,
        composed_span / MOST_POINTS_COMPOSED,
        finest * len(charges) / FEW_EVENTS,
    )
    return float(finest * 2 ** math.ceil(math.log2(wanted / finest) - 1e-9))


def _multiplier(event: Event) -> float:
    """Of the one Gaussian that stands for all noise of a step."""
    if isinstance(event, SampledTest):
        return float((event.test**-2 + event.gradient**-2 + event.range_of_unit_gap**2 * event.gap**-2) ** -0.5)
    if isinstance(event, PublishedTest):
        return event.gradient
    if isinstance(event, Geometric | Responses | Size | Names):
        raise ConfigurationError(f"expected an event that one Gaussian mechanism dominates, got {event}")
    return event.multiplier


def _span(event: Event) -> float:
    """How wide the losses of one step lie, unsampled: sampling narrows only one side."""
    if isinstance(event, Geometric | Size):
        return event.cells / event.scale
    if isinstance(event, Responses):
        return event.epsilon
    noise = _multiplier(event)
    return TAIL_DEVIATIONS / noise + 0.5 / noise**2


def _typical_loss(charge: Charge) -> float:
    """The order of magnitude of the mean loss; it decides about a grid and nothing else."""
    if isinstance(charge.event, Geometric | Size):
        return charge.steps * charge.event.cells / charge.event.scale * math.tanh(0.5 / charge.event.scale)
    if isinstance(charge.event, Responses):
        return charge.steps * charge.event.epsilon * math.tanh(0.5 * charge.event.epsilon)
    rate, noise = getattr(charge.event, "rate", 1.0), _multiplier(charge.event)
    sampled = rate**2 * math.expm1(min(noise**-2, 50.0))
    return charge.steps * min(sampled, rate * 0.5 / noise**2)


@lru_cache(maxsize=64)
def distribution(event: Event, interval: float) -> Distribution:
    """The losses of one step, in both directions (a triple more, a triple less)."""
    if isinstance(event, Gaussian):
        return privacy_loss_distribution.from_gaussian_mechanism(
            event.multiplier, value_discretization_interval=interval
        )
    if isinstance(event, Geometric | Size):
        one = privacy_loss_distribution.from_discrete_laplace_mechanism(
            1 / event.scale, sensitivity=1, value_discretization_interval=interval
        )
        return one.self_compose(event.cells) if event.cells > 1 else one
    if isinstance(event, Responses):  # one answer changes, as a count that changes by one
        return privacy_loss_distribution.from_discrete_laplace_mechanism(
            event.epsilon, sensitivity=1, value_discretization_interval=interval
        )
    if isinstance(event, SampledGaussian | SampledPair):
        return sampled_gaussian_distribution(event.multiplier, event.rate, interval)
    if isinstance(event, SampledTest):
        return sampled_test_distribution(event, interval)
    raise ConfigurationError(f"expected an event with a privacy-loss distribution, got {event}")


@lru_cache(maxsize=32)
def repeated(charge: Charge, interval: float) -> Distribution:
    """The losses of all steps of a charge."""
    one = distribution(charge.event, interval)
    return one if charge.steps == 1 else one.self_compose(charge.steps, TRUNCATED_MASS)


def composed(charges: tuple[Charge, ...], interval: float) -> Distribution:
    """The losses of all charges; a schedule that grew by one event costs one more composition."""
    known = next((end for end in range(len(charges), 1, -1) if (charges[:end], interval) in _COMPOSED), 1)
    losses = _COMPOSED[charges[:known], interval] if known > 1 else repeated(charges[0], interval)
    for charge in charges[known:]:
        losses = losses.compose(repeated(charge, interval), TRUNCATED_MASS)
    if len(charges) > 1:
        _COMPOSED[charges, interval] = losses
    while len(_COMPOSED) > MOST_COMPOSED:
        del _COMPOSED[next(iter(_COMPOSED))]
    return losses


_COMPOSED: dict[tuple[tuple[Charge, ...], float], Distribution] = {}
"""The newest compositions of several events."""
MOST_COMPOSED = 16
_LOCK = threading.Lock()
"""Clients ask at the same time and for the same: the second shall find what the first computed."""
