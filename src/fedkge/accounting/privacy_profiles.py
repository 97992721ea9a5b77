"""The privacy losses of one step of propose, test, release over a Poisson sample (docs/proofs/ptr.md).

The private arg max has a bounded range, whose worst privacy profile is known in closed form. It is composed with the
Gaussian of test and gradient, the result is amplified by sampling once, and put on a grid that rounds against us.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from fedkge.mechanisms.events import SampledTest

Numbers = NDArray[np.float64]

NODES = 64
"""Of the quadrature over the losses of the arg max; the integrand is analytic."""
TAIL_DEVIATIONS = 10.0
ROUNDING = 1e-15
"""What quadrature and float64 may be wrong by; added to every delta."""


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


def range_of_gap(gap: float) -> float:
    """The bounded range of the arg max with Gumbel noise of scale 2 C2 `gap`: 3 C2 over that scale."""
    return 1.5 / gap


def unsampled_delta(event: SampledTest, epsilons: Numbers) -> Numbers:
    """The privacy profile of arg max, test and gradient together, for a triple that is surely in the batch."""
    width = range_of_gap(event.gap)
    noise = (event.test**-2 + event.gradient**-2) ** -0.5
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    losses = width * nodes
    masses = width * weights * np.exp((losses - width) / 2) / (-2 * math.expm1(-width))
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
    """The losses of one step in both directions, without the failures of its test."""
    noise = (event.test**-2 + event.gradient**-2) ** -0.5
    reach = range_of_gap(event.gap) + TAIL_DEVIATIONS / noise + 0.5 / noise**2
    most = reach if event.rate == 1 else math.log1p(event.rate * math.expm1(min(reach, 700.0)))
    least = reach if event.rate == 1 else -math.log1p(-event.rate)
    high, low = math.ceil(most / interval), math.ceil(min(least, reach) / interval)
    with_triple = _on_grid(_with_triple(event, np.arange(-low, high + 1) * interval), -low, interval)
    if event.rate == 1:
        return privacy_loss_distribution.PrivacyLossDistribution(with_triple)
    without = _on_grid(_without_triple(event, np.arange(-high, low + 1) * interval), -high, interval)
    return privacy_loss_distribution.PrivacyLossDistribution(with_triple, without)


def _with_triple(event: SampledTest, epsilons: Numbers) -> Numbers:
    """The profile of the batch that may hold the triple, against the one that cannot."""
    if event.rate == 1:
        return unsampled_delta(event, epsilons)
    deltas = -np.expm1(epsilons)
    inner = 1 + np.expm1(epsilons) / event.rate
    inside = inner > 0
    deltas[inside] = event.rate * unsampled_delta(event, np.log(inner[inside]))
    return deltas


def _without_triple(event: SampledTest, epsilons: Numbers) -> Numbers:
    """The profile of the batch that cannot hold the triple, against the one that may."""
    share = 1 - (1 - event.rate) * np.exp(epsilons)
    deltas = np.zeros_like(epsilons)
    inside = share > 0
    inner = math.log(event.rate) + epsilons[inside] - np.log(share[inside])
    deltas[inside] = share[inside] * unsampled_delta(event, inner)
    return deltas


def _on_grid(deltas: Numbers, low: int, interval: float) -> Any:
    safe = np.minimum.accumulate(np.clip(deltas + ROUNDING, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, low, low + len(safe) - 1, safe)
