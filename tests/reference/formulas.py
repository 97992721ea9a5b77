"""Formulas of docs/proofs in high precision, written from those pages and not from the product's code."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

mpmath.mp.dps = 50
LARGEST_ORDER = 256


def divergence_of_gaussian(rate: float, sigma: float, order: float) -> Any:
    """Renyi divergence of one step of DPSGD: the binomial sum at whole orders, quadrature between them."""
    q, s, a = mpmath.mpf(rate), mpmath.mpf(sigma), mpmath.mpf(order)
    if order == int(order):
        return log_moment(rate, 1 / (2 * s * s), int(order)) / (a - 1)

    def integrand(x: Any) -> Any:
        return mpmath.npdf(x, 0, s) * (1 - q + q * mpmath.exp((2 * x - 1) / (2 * s * s))) ** a

    crossing = s * s * mpmath.log((1 - q) / q) + 0.5
    edges = sorted({-20 * s, mpmath.mpf(0), a, crossing, max(a, crossing) + 20 * s})
    return mpmath.log(mpmath.quad(integrand, edges)) / (a - 1)


def log_moment(rate: float, rho: Any, order: int) -> Any:
    """Log of A_a of ptr.md: the sum over how often the triple is drawn."""
    q = mpmath.mpf(rate)
    terms = (
        mpmath.binomial(order, count) * (1 - q) ** (order - count) * q**count * mpmath.exp(count * (count - 1) * rho)
        for count in range(order + 1)
    )
    return mpmath.log(mpmath.fsum(terms))


def divergence_of_test(rate: float, rho: Any, order: float) -> Any:
    """Renyi divergence of one step of propose, test, release, the larger of both directions (ptr.md, by orders)."""
    q, a, below = mpmath.mpf(rate), mpmath.mpf(order), math.floor(order)
    lower, upper = (log_moment(rate, rho, whole) for whole in (below, below + 1))
    with_triple = lower + (a - below) * (upper - lower)
    without = mpmath.log(1 + a * (a - 1) / 2 * q**2 * (1 - q) ** (-(a + 1)) * mpmath.expm1(2 * rho))
    return min(a * rho, max(with_triple, without) / (a - 1))


def epsilon_of_gaussian(sigma: float, delta: float) -> float:
    """The epsilon at which the exact delta of the Gaussian mechanism (sensitivity 1) is `delta`, by bisection."""
    s, low, high = mpmath.mpf(sigma), mpmath.mpf(0), mpmath.mpf(100)
    for _ in range(150):
        middle = (low + high) / 2
        upper = mpmath.ncdf(1 / (2 * s) - middle * s)
        lower = mpmath.exp(middle) * mpmath.ncdf(-1 / (2 * s) - middle * s)
        low, high = (middle, high) if upper - lower > delta else (low, middle)
    return float(high)


def bounded_range_profile(width: float, epsilon: float) -> float:
    """The largest delta of a mechanism of bounded range: the best of all two-point mechanisms (ptr.md, Lemma 2)."""

    def negative(t: float) -> float:
        return -(1 - math.exp(t - width)) * max(0.0, 1 - math.exp(epsilon - t)) / -math.expm1(-width)

    return -float(minimize_scalar(negative, bounds=(0, width), method="bounded", options={"xatol": 1e-12}).fun)


def published_order_is_allowed(rate: float, sigma: float, order: float) -> bool:
    """The range of orders under which the paper's lemma holds (published.md)."""
    q, s, a = mpmath.mpf(rate), mpmath.mpf(sigma), mpmath.mpf(order)
    length = mpmath.log(1 + 1 / (q * (a - 1)))
    first = s**2 * length / 2 - 2 * mpmath.log(s)
    second = (s**2 * length**2 / 2 - mpmath.log(5) - 2 * mpmath.log(s)) / (length + mpmath.log(q * a) + 1 / (2 * s**2))
    return bool(1 < a <= min(first, second))


def published_gradient(rate: float, sigma: float, order: float) -> Any:
    """epsilon_g as printed."""
    return 2 * mpmath.mpf(rate) ** 2 * order / mpmath.mpf(sigma)


def published_selection(rate: float, order: int) -> Any:
    """epsilon_s as printed, with sigma_r = sigma_p = 1."""
    q = mpmath.mpf(rate)

    def unsampled(at: int) -> Any:
        return mpmath.mpf(at) / 8 + mpmath.mpf(at) / 2

    two = unsampled(2)
    total = 1 + q**2 * mpmath.binomial(order, 2) * min(4 * mpmath.expm1(two), 2 * mpmath.exp(two))
    for power in range(3, order + 1):
        total += 2 * q**power * mpmath.binomial(order, power) * mpmath.exp((power - 1) * unsampled(power))
    return mpmath.log(total) / (order - 1)


def published_epsilon(rate: float, steps: int, delta: float, *, allowed: bool) -> tuple[float, int]:
    """The least over whole orders, within the range of the lemma or not; all noise is 1."""
    orders = [
        order for order in range(2, LARGEST_ORDER + 1) if not allowed or published_order_is_allowed(rate, 1, order)
    ]
    found = (
        (
            steps * (published_gradient(rate, 1, order) + published_selection(rate, order))
            + mpmath.log(1 / mpmath.mpf(delta)) / (order - 1),
            order,
        )
        for order in orders
    )
    epsilon, order = min(found)
    return float(epsilon), order


def tail_of_test(losses: Any, slope: float, width: float, noise: float) -> Any:
    """The chance that arg max and Gaussian together lose more, with the triple (slope 1/2) or without it (-1/2).

    The loss of the arg max has a density proportional to exp(slope x) between -width and width, and the Gaussian adds
    a loss of mean slope/noise^2 and deviation 1/noise. Integrated by parts.
    """

    def primitive(x: float) -> Any:
        argument = noise * (x - losses) + slope / noise
        rest = np.exp(slope * losses - slope**2 / (2 * noise**2)) * ndtr(argument - slope / noise)
        return (np.exp(slope * x) * ndtr(argument) - rest) / slope

    return (primitive(width) - primitive(-width)) / (4 * math.sinh(width / 2))


def losses_of_tests(rate: float, steps: int, delta: float, interval: float) -> float:
    """Epsilon of the amplified pair of ptr.md, all noise at 1, composed by dp-accounting."""
    width, noise = 1.5, math.sqrt(0.5)
    reach = width + 10 / noise + 0.5 / noise**2
    high = math.ceil(math.log1p(rate * math.expm1(reach)) / interval)
    low = math.ceil(-math.log1p(-rate) / interval)

    def inner(shifted: Any) -> tuple[Any, Any, Any]:
        """Where the sampled loss is crossed, and both tails there."""
        exists = shifted > 0
        crossing = np.log(np.where(exists, shifted, 1.0))
        return exists, tail_of_test(crossing, 0.5, width, noise), tail_of_test(crossing, -0.5, width, noise)

    up, down = np.arange(-low, high + 1) * interval, np.arange(-high, low + 1) * interval
    exists, with_triple, without = inner((np.exp(up) - 1 + rate) / rate)
    added = np.where(exists, rate * with_triple + (1 - rate - np.exp(up)) * without, -np.expm1(up))
    exists, with_triple, without = inner((np.exp(-down) - 1 + rate) / rate)
    removed = (1 - np.exp(down) * (1 - rate)) * (1 - without) - np.exp(down) * rate * (1 - with_triple)
    both = ((-low, added), (-high, np.where(exists, removed, 0.0)))
    pmfs = [
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            interval, first, first + len(deltas) - 1, np.minimum.accumulate(np.clip(deltas, 0, 1))
        )
        for first, deltas in both
    ]
    losses = privacy_loss_distribution.PrivacyLossDistribution(*pmfs).self_compose(steps, 1e-15)
    return float(losses.get_epsilon_for_delta(delta))
