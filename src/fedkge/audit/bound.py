"""How much privacy must have been lost, if an auditor guessed so many coins right: numbers in, numbers out.

The one-run audit of Steinke, Nasr and Jagielski (2023): m canaries are put into the data by independent fair coins,
one training is attacked, r of the coins are guessed and v of the guesses are right. If training was (epsilon, delta)
differentially private, then Pr[v or more right] is at most

    p(epsilon) = Pr[W >= v] + 2 m delta max over 1 <= i <= v of Pr[v > W >= v - i] / i

with W binomial over r trials of chance e^epsilon / (1 + e^epsilon). An epsilon whose p is below alpha is refuted.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from fedkge.base.errors import ConfigurationError

CONFIDENCE = 0.95
DELTA = 1e-5
HALVINGS = 60
LARGEST_EPSILON = 700.0
"""Beyond it e^epsilon is no number."""


def p_value(epsilon: float, right: int, guesses: int, canaries: int, delta: float = DELTA) -> float:
    """How likely so many right guesses are at most, if training was (epsilon, delta) differentially private.

    >>> p_value(0.0, right=8, guesses=10, canaries=10, delta=0.0) == (45 + 10 + 1) / 2**10
    True
    """
    check_counts(right, guesses, canaries)
    check_delta(delta)
    if right == 0:
        return 1.0
    beyond = _at_least(epsilon, right, guesses)
    if delta == 0:
        return beyond
    # Pr[W = right - 1], Pr[W = right - 2] ... down to Pr[W = 0]
    counts = np.arange(right - 1, -1, -1, dtype=np.float64)
    ways = special.gammaln(guesses + 1) - special.gammaln(counts + 1) - special.gammaln(guesses - counts + 1)
    hit, miss = -np.logaddexp(0.0, -epsilon), -np.logaddexp(0.0, epsilon)
    just_below = np.cumsum(np.exp(ways + counts * hit + (guesses - counts) * miss))
    return min(1.0, beyond + 2 * canaries * delta * float(np.max(just_below / np.arange(1, right + 1))))


def epsilon_lower_bound(
    right: int, guesses: int, canaries: int, delta: float = DELTA, confidence: float = CONFIDENCE
) -> float:
    """The largest epsilon that is refuted: the true one is at least this, at the given confidence; 0 if none is.

    The number of guesses must have been fixed before anybody looked at the coins. With `delta` 0 the claim is pure
    differential privacy.

    >>> round(epsilon_lower_bound(right=95, guesses=100, canaries=1000), 3)
    2.165
    >>> epsilon_lower_bound(right=52, guesses=100, canaries=1000)
    0.0
    """
    alpha = alpha_of(confidence)
    if p_value(0.0, right, guesses, canaries, delta) >= alpha:
        return 0.0
    # p is at least its first term, which rises with epsilon: nothing beyond that term's own crossing is refuted.
    refuted, not_refuted = 0.0, LARGEST_EPSILON
    for term in (0.0, delta):
        refuted = 0.0
        for _ in range(HALVINGS):
            middle = (refuted + not_refuted) / 2
            if p_value(middle, right, guesses, canaries, term) < alpha:
                refuted = middle
            else:
                not_refuted = middle
        if delta == 0:
            break
    return refuted


def ceiling(guesses: int, canaries: int, delta: float = DELTA, confidence: float = CONFIDENCE) -> float:
    """What the audit could show at most: its bound if every guess were right. No larger claim can be contradicted.

    >>> [round(ceiling(number, canaries=2 * number), 2) for number in (100, 1000, 5000)]
    [3.49, 5.76, 7.14]
    """
    return epsilon_lower_bound(guesses, guesses, canaries, delta, confidence)


def alpha_of(confidence: float) -> float:
    """The chance of a false alarm that a confidence leaves.

    >>> round(alpha_of(0.95), 9)
    0.05
    """
    if not 0 < confidence < 1:
        raise ConfigurationError(f"expected a confidence between 0 and 1, like 0.95, got {confidence}")
    return 1.0 - confidence


def check_counts(right: int, guesses: int, canaries: int) -> None:
    """Refuse counts that no audit gives."""
    if not (0 <= right <= guesses <= canaries and guesses >= 1):
        raise ConfigurationError(
            "expected 0 <= right guesses <= guesses <= canaries and at least one guess, "
            f"got {right}, {guesses} and {canaries}"
        )


def check_delta(delta: float) -> None:
    """Refuse what is no delta."""
    if not 0 <= delta < 1:
        raise ConfigurationError(f"expected a delta of at least 0 (pure) and below 1, like 1e-5, got {delta}")


def _at_least(epsilon: float, right: int, guesses: int) -> float:
    """Pr[W >= right] with W binomial: the regularised incomplete beta function, exact in both tails."""
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    return float(special.betainc(right, guesses - right + 1, chance))
