"""The privacy losses of one step over a Poisson sample, from the privacy profile of the step without sampling.

For DPSGD that is the profile of a Gaussian. For propose, test, release (docs/proofs/ptr.md) the private arg max has a
bounded range, whose worst profile is known in closed form; it is composed with the Gaussian of test and gradient.
Either is amplified by sampling once, and put on a grid that rounds against us.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from fedkge.mechanisms.events import SampledTest

Numbers = NDArray[np.float64]
Profile: TypeAlias = Callable[[Numbers], Numbers]
"""Delta by epsilon, which may be negative."""

NODES, PANEL = 64, 4.0
"""Quadrature over the losses of the arg max: so many nodes for so many deviations of the Gaussian's loss. The integrand
is analytic, so what is left is rounding."""
TAIL_DEVIATIONS = 10.0
ROUNDING = 1e-12
"""The share by which quadrature and float64 may be wrong; every delta is raised by it."""


def bounded_range_delta(range_: float, epsilon: float) -> float:
    """The largest delta that a mechanism whose log ratios lie within a window of width `range_` can have.

    >>> round(bounded_range_delta(1.0, 0.0), 6)
    0.244919
    """
    if epsilon >= range_:
        return 0.0
    if epsilon <= -range_:
        return -math.expm1(epsilon)
    return math.expm1((epsilon - range_) / 2) ** 2 / -math.expm1(-range_)


def unsampled_delta(event: SampledTest, epsilons: Numbers) -> Numbers:
    """The privacy profile of arg max, test and gradient together, for a triple that is surely in the batch."""
    width = event.range
    noise = (event.test**-2 + event.gradient**-2) ** -0.5
    panels = math.ceil(2 * width * noise / PANEL)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    centres = width * ((2 * np.arange(panels) + 1) / panels - 1)
    losses = (centres[:, None] + width / panels * nodes).ravel()
    masses = np.tile(weights, panels) * width / panels * np.exp((losses - width) / 2) / (-2 * math.expm1(-width))
    total = np.zeros_like(epsilons)
    for loss, mass in zip(losses, masses, strict=True):
        total += mass * _gaussian_delta(noise, epsilons - loss)
    return total


def _gaussian_delta(multiplier: float, epsilons: Numbers) -> Numbers:
    """P(N > s e - 1/(2s)) - e^e P(N > s e + 1/(2s)), with care for large exponents."""
    upper = ndtr(0.5 / multiplier - epsilons * multiplier)
    lower = np.exp(epsilons + log_ndtr(-0.5 / multiplier - epsilons * multiplier))
    return np.asarray(np.clip(upper - lower, 0.0, 1.0))


def sampled_test_distribution(event: SampledTest, interval: float) -> Any:
    """The losses of one step of propose, test, release in both directions, without the failures of its test."""
    noise = (event.test**-2 + event.gradient**-2) ** -0.5
    reach = event.range + gaussian_reach(noise)
    return amplified(lambda epsilons: unsampled_delta(event, epsilons), reach, event.rate, interval)


def sampled_gaussian_distribution(multiplier: float, rate: float, interval: float) -> Any:
    """The losses of one step of DPSGD in both directions.

    What dp-accounting's `from_gaussian_mechanism` gives, a dozen times quicker: it goes through the grid point by
    point. A test holds the two together.
    """
    return amplified(lambda epsilons: _gaussian_delta(multiplier, epsilons), gaussian_reach(multiplier), rate, interval)


def gaussian_reach(multiplier: float) -> float:
    """Beyond this loss a Gaussian has a mass below 1e-23."""
    return TAIL_DEVIATIONS / multiplier + 0.5 / multiplier**2


def amplified(profile: Profile, reach: float, rate: float, interval: float) -> Any:
    """The losses of a mechanism on a Poisson sample, from the privacy profile that it has without sampling.

    The profile must bound both directions; `reach` is the loss beyond which it is as good as 0.
    """
    if rate == 1:
        end = math.ceil(reach / interval)
        grid = _grid(-end, end, interval)
        return privacy_loss_distribution.PrivacyLossDistribution(_on_grid(profile(grid), -end, interval))
    high = math.ceil(_log_mixed(rate, reach) / interval)
    low = math.ceil(min(-math.log1p(-rate), reach) / interval)
    with_triple = _with_triple(profile, rate, _grid(-low, high, interval))
    without = _without_triple(profile, rate, _grid(-high, low, interval))
    return privacy_loss_distribution.PrivacyLossDistribution(
        _on_grid(with_triple, -low, interval), _on_grid(without, -high, interval)
    )


def _grid(low: int, high: int, interval: float) -> Numbers:
    return np.arange(low, high + 1, dtype=np.float64) * interval


def _log_mixed(rate: float, loss: float) -> float:
    """log(1 - rate + rate e^loss)."""
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def _with_triple(profile: Profile, rate: float, epsilons: Numbers) -> Numbers:
    """The profile of the batch that may hold the triple, against the one that cannot."""
    deltas = -np.expm1(epsilons)
    inner = 1 + np.expm1(epsilons) / rate
    inside = inner > 0
    deltas[inside] = rate * profile(np.log(inner[inside]))
    return deltas


def _without_triple(profile: Profile, rate: float, epsilons: Numbers) -> Numbers:
    """The profile of the batch that cannot hold the triple, against the one that may."""
    share = 1 - (1 - rate) * np.exp(epsilons)
    deltas = np.zeros_like(epsilons)
    inside = share > 0
    inner = math.log(rate) + epsilons[inside] - np.log(share[inside])
    deltas[inside] = share[inside] * profile(inner)
    return deltas


def _on_grid(deltas: Numbers, low: int, interval: float) -> Any:
    safe = np.minimum.accumulate(np.clip(deltas * (1 + ROUNDING), 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, low, low + len(safe) - 1, safe)
