"""Epsilon by Renyi differential privacy: quick, looser than `pld`, and the only one that a filter can stand on.

Curves of Gaussians come from dp-accounting; the curve of propose, test, release is ours (docs/proofs/ptr.md).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from fedkge.accounting.accountants import check_delta, merged
from fedkge.accounting.beforehand import apart
from fedkge.accounting.failures import failure_mass
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import (
    Charge,
    Event,
    Gaussian,
    Geometric,
    PublishedGaussian,
    PublishedTest,
    Responses,
    SampledGaussian,
    SampledPair,
    SampledTest,
)

Curve = NDArray[np.float64]

ORDERS: tuple[float, ...] = tuple(float(order) for order in rdp_privacy_accountant.DEFAULT_RDP_ORDERS)


@dataclass(frozen=True)
class RDPAccountant:
    """Renyi accounting on the orders of dp-accounting.

    >>> charges = [Charge(SampledGaussian(rate=64 / 90000, multiplier=1), steps=1000)]
    >>> round(RDPAccountant().epsilon(charges, delta=1e-5), 3)
    0.617
    """

    name: str = "rdp"
    sound: bool = True

    def epsilon(self, charges: Sequence[Charge], delta: float) -> float:
        """What the charges cost together; infinite if one of them guarantees nothing, or its failures exceed delta."""
        return self.epsilon_and_order(charges, delta)[0]

    def epsilon_and_order(self, charges: Sequence[Charge], delta: float) -> tuple[float, float]:
        """Epsilon, and the order that proves it."""
        left = check_delta(delta) - failure_mass(charges)
        if left <= 0:
            return math.inf, math.nan
        before, rest = apart(charges)
        epsilon, order = epsilon_of_curve(total_curve(rest), left)
        return before + epsilon, order


def epsilon_of_curve(curve: Curve, delta: float) -> tuple[float, float]:
    """The least epsilon that a curve over `ORDERS` proves at `delta`, and the order that proves it."""
    if not np.isfinite(curve).any():
        return math.inf, math.nan
    epsilon, order = rdp_privacy_accountant.compute_epsilon(ORDERS, list(curve), delta)
    return float(epsilon), float(order)


def total_curve(charges: Sequence[Charge]) -> Curve:
    """The Renyi divergence of all charges together, at each of `ORDERS`."""
    total = np.zeros(len(ORDERS))
    for charge in merged(charges):
        total += charge.steps * curve(charge.event)
    return total


@lru_cache(maxsize=1024)
def curve(event: Event) -> Curve:
    """The Renyi divergence of one step, at each of `ORDERS`."""
    if isinstance(event, PublishedTest | PublishedGaussian):
        return np.full(len(ORDERS), np.inf)
    if isinstance(event, Geometric):
        return np.array([event.cells * response_divergence(1 / event.scale, order) for order in ORDERS])
    if isinstance(event, Responses):
        return np.array([response_divergence(event.epsilon, order) for order in ORDERS])
    if isinstance(event, SampledTest):
        return np.array([sampled_divergence(event.rate, concentration(event), order) for order in ORDERS])
    with _without_warnings():
        accountant = rdp_privacy_accountant.RdpAccountant(ORDERS).compose(_event(event))
    return np.asarray(accountant.rdp, dtype=np.float64)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence the library's warning about orders whose series does not converge: it counts them as infinite."""
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _event(event: Event) -> Any:
    """The event as dp-accounting knows it. Its fields are Python floats: see the trap that tests/accounting keeps."""
    if isinstance(event, Gaussian):
        return dp_event.GaussianDpEvent(float(event.multiplier))
    if isinstance(event, SampledGaussian):
        return dp_event.PoissonSampledDpEvent(float(event.rate), dp_event.GaussianDpEvent(float(event.multiplier)))
    if isinstance(event, SampledPair):
        both = [dp_event.GaussianDpEvent(float(noise)) for noise in (event.selection, event.gradient)]
        return dp_event.PoissonSampledDpEvent(float(event.rate), dp_event.ComposedDpEvent(both))
    raise ConfigurationError(f"expected an event with a Renyi curve, got {event}")


def response_divergence(loss: float, order: float) -> float:
    """Of a randomised response with odds exp(loss), which a count that changes by one is (docs/proofs/counts.md).

    >>> round(response_divergence(1.0, 1e6), 3)
    1.0
    """
    right = -math.log1p(math.exp(-loss))  # log of the chance to answer right; a wrong answer has `loss` less
    terms = (right + (order - 1) * loss, right - loss - (order - 1) * loss)
    return float(np.logaddexp(*terms)) / (order - 1)


def concentration(event: SampledTest) -> float:
    """rho of one step on a batch that surely holds the triple: its divergence at order a is at most a times rho.

    >>> concentration(SampledTest(rate=0.1, gap=1, test=1, gradient=1, failure=1e-6))
    1.28125
    """
    return event.range**2 / 8 + 0.5 / event.test**2 + 0.5 / event.gradient**2


def sampled_divergence(rate: float, rho: float, order: float) -> float:
    """The divergence of a step with concentration `rho` over a Poisson sample, the larger of both directions.

    >>> round(sampled_divergence(64 / 90000, 0.5, 2) / 8.707549695950479e-07, 6)
    1.0
    """
    unsampled = order * rho
    if rate == 1:
        return unsampled
    with_triple = _log_moment(rate, rho, order)
    growth = math.log(order * (order - 1) / 2) + 2 * math.log(rate) - (order + 1) * math.log1p(-rate)
    without = float(np.logaddexp(0.0, growth + 2 * rho + math.log(-math.expm1(-2 * rho))))
    return min(unsampled, max(with_triple, without) / (order - 1))


def _log_moment(rate: float, rho: float, order: float) -> float:
    """Log of the moment of the batch that may hold the triple; between whole orders by its convexity."""
    below = math.floor(order)
    lower = _log_moment_whole(rate, rho, below)
    if below == order:
        return lower
    return lower + (order - below) * (_log_moment_whole(rate, rho, below + 1) - lower)


@lru_cache(maxsize=4096)
def _log_moment_whole(rate: float, rho: float, order: int) -> float:
    if order < 2:
        return 0.0
    counts = np.arange(order + 1)
    combinations = gammaln(order + 1) - gammaln(counts + 1) - gammaln(order - counts + 1)
    terms = combinations + (order - counts) * math.log1p(-rate) + counts * math.log(rate) + counts * (counts - 1) * rho
    return max(0.0, float(logsumexp(terms)))
