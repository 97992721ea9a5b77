"""The bound if the mechanism is Gaussian-like: a sharper reading of the same guesses, for a narrower claim.

Mahloujifar, Melis and Chaudhuri (2024) refute a whole trade-off function f instead of one (epsilon, delta). Here f is
that of a Gaussian mechanism, g(x) = Phi(Phi^-1(x) - mu), so the result says: if training hides a triple like one
Gaussian release, mu is at least this. A mechanism that is not Gaussian-like may have a smaller epsilon than it.
"""

from __future__ import annotations

import math

from scipy import special

from fedkge.audit.bound import CONFIDENCE, DELTA, HALVINGS, alpha_of, check_counts
from fedkge.base.errors import ConfigurationError

LABEL = "if the mechanism is Gaussian-like"
LARGEST_MU = 64.0
"""Its epsilon is above 2,000: no audit gets there."""


def refutes(mu: float, right: int, guesses: int, canaries: int, alpha: float) -> bool:
    """Whether so many right guesses are too many for mu-Gaussian differential privacy.

    >>> refutes(0.5, right=95, guesses=100, canaries=1000, alpha=0.05)
    True
    """
    limit = guesses / canaries
    r, h = alpha * right / canaries, alpha * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        higher = max(h, float(special.ndtr(special.ndtri(r) - mu)))
        if higher == h:  # then nothing changes any more
            break
        r, h = min(1.0, r + i / (guesses - i) * (higher - h)), higher
        if r + h > limit:  # both only grow
            return True
    return r + h > limit


def mu_lower_bound(right: int, guesses: int, canaries: int, confidence: float = CONFIDENCE) -> float:
    """The largest mu that is refuted, by bisection; 0 if none is.

    >>> round(mu_lower_bound(right=95, guesses=100, canaries=1000), 3)
    0.787
    """
    check_counts(right, guesses, canaries)
    alpha = alpha_of(confidence)
    refuted, not_refuted = 0.0, LARGEST_MU
    if not refutes(refuted, right, guesses, canaries, alpha):
        return 0.0
    for _ in range(HALVINGS):
        middle = (refuted + not_refuted) / 2
        if refutes(middle, right, guesses, canaries, alpha):
            refuted = middle
        else:
            not_refuted = middle
    return refuted


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """The epsilon at `delta` of mu-Gaussian differential privacy (Dong, Roth and Su, 2022).

    delta(epsilon) = Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2), turned round by bisection.

    >>> round(gaussian_epsilon(1.0, 1e-5), 3)
    4.377
    """
    if not 0 < delta < 1:
        raise ConfigurationError(f"expected a delta between 0 and 1, like 1e-5, got {delta}")
    if mu == 0:
        return 0.0

    def lost(epsilon: float) -> float:
        first, second = special.log_ndtr(mu / 2 - epsilon / mu), special.log_ndtr(-mu / 2 - epsilon / mu)
        return math.exp(first) - math.exp(epsilon + second)

    if lost(0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # there Phi alone is below delta
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if lost(middle) > delta else (low, middle)
    return low


def gaussian_lower_bound(
    right: int, guesses: int, canaries: int, delta: float = DELTA, confidence: float = CONFIDENCE
) -> float:
    """The epsilon at `delta` that is refuted if the mechanism is Gaussian-like.

    >>> round(gaussian_lower_bound(right=5000, guesses=5000, canaries=10_000), 1)
    13.6
    """
    return gaussian_epsilon(mu_lower_bound(right, guesses, canaries, confidence), delta)
