"""The least noise that keeps a plan within a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from fedkge.accounting.accountants import Accountant
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.mechanisms.events import Charge

LEAST_NOISE, MOST_NOISE = 0.05, 10_000.0
PRECISION = 1.001
"""The noise that is returned exceeds the least possible by this factor at most."""
CLOSE = 0.0005
"""A cost so little below the budget, as a share of it, is as good: noise moves epsilon by at least its own share."""
MOST_GUESSES = 12
"""After this many interpolations, use bisection."""


@runtime_checkable
class Refinable(Protocol):
    """An accountant with a quicker one, of slightly larger epsilons, to search with first."""

    def coarse(self) -> Accountant:
        """The quicker one."""
        ...


def calibrate(
    charges_of: Callable[[float], Sequence[Charge]], epsilon: float, delta: float, accountant: Accountant
) -> float:
    """The least noise multiplier, to 0.1 %, whose charges cost at most `epsilon`; what is returned never costs more.

    `charges_of` says what a plan costs for a noise multiplier; more noise must never cost more. No multiplier below
    0.05 is tried: noise that small protects nothing.

    >>> from fedkge.accounting.accountants import make_accountant
    >>> from fedkge.mechanisms.events import SampledGaussian
    >>> plan = lambda noise: [Charge(SampledGaussian(rate=4096 / 90000, multiplier=noise), steps=1000)]
    >>> noise = calibrate(plan, epsilon=8, delta=1e-5, accountant=make_accountant("rdp"))
    >>> round(noise, 2), make_accountant("rdp").epsilon(plan(noise), 1e-5) <= 8
    (1.18, True)
    """
    if not 0 < epsilon < math.inf:
        raise ConfigurationError(f"epsilon: expected a budget above 0, got {epsilon}")

    def excess_by(counting: Accountant) -> Callable[[float], float]:
        """Log of the cost over the budget, by noise: at most 0 is within."""

        def excess(noise: float) -> float:
            cost = counting.epsilon(charges_of(noise), delta)
            return math.log(cost / epsilon) if 0 < cost < math.inf else (math.inf if cost > 0 else -math.inf)

        return excess

    if isinstance(accountant, Refinable):
        start = _search(excess_by(accountant.coarse()), 1.0, 2.0)
        found = _search(excess_by(accountant), start or 1.0, 1.004 if start else 2.0)
    else:
        found = _search(excess_by(accountant), 1.0, 2.0)
    if found is None:
        raise _impossible(charges_of, epsilon, delta, accountant)
    return found


def _search(excess: Callable[[float], float], start: float, factor: float) -> float | None:
    """The least noise within the budget; None if even the most is not."""
    low, high, below, above = _bracket(excess, start, factor)
    if above > 0:
        return None
    if below <= 0:
        return low
    tries = 0
    while high / low > PRECISION and above < -CLOSE:
        noise = _between(low, high, below, above) if tries < MOST_GUESSES else math.sqrt(low * high)
        cost = excess(noise)
        tries += 1
        if cost <= 0:
            high, above = noise, cost
        else:
            low, below = noise, cost
    return high


def _bracket(excess: Callable[[float], float], start: float, factor: float) -> tuple[float, float, float, float]:
    """A noise that costs too much and one that does not, near `start`, with their excess."""
    low = high = start
    below = above = excess(start)
    if -CLOSE <= above <= 0:
        return low, high, below, above
    while above > 0 and high < MOST_NOISE:
        low, below, high, factor = high, above, min(factor * high, MOST_NOISE), min(2.0, factor**2)
        above = excess(high)
    while below <= 0 and low > LEAST_NOISE:
        high, above, low, factor = low, below, max(low / factor, LEAST_NOISE), min(2.0, factor**2)
        below = excess(low)
    return low, high, below, above


def _between(low: float, high: float, below: float, above: float) -> float:
    """Just beyond where the cost would meet the budget if it were a power of the noise, seen from the nearer end."""
    if not (math.isfinite(below) and math.isfinite(above)):
        return math.sqrt(low * high)
    width = math.log(high / low)
    root = width * below / (below - above)
    beyond = min(0.45 * math.log(PRECISION), 0.25 * width)
    aimed = root + beyond if root < width / 2 else root - beyond
    return low * math.exp(min(max(aimed, 0.2 * beyond), width - 0.2 * beyond))


def _impossible(
    charges_of: Callable[[float], Sequence[Charge]], epsilon: float, delta: float, accountant: Accountant
) -> PrivacyError:
    least = accountant.epsilon(charges_of(MOST_NOISE), delta)
    if math.isinf(least):
        what = (
            f"no noise gives any guarantee at delta {delta:g} (the failures of the tests alone exceed it, or the "
            "mechanism has none); choose a larger delta, a smaller delta_t, fewer steps or another mechanism"
        )
    else:
        what = (
            f"even a noise multiplier of {MOST_NOISE:g} costs epsilon {least:.3g} at delta {delta:g}; raise epsilon "
            "above that, take fewer rounds or steps, or a smaller sampling rate"
        )
    return PrivacyError(f"epsilon {epsilon:g} cannot be kept: {what}")
