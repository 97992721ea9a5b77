"""Detectors of wrong randomness: each answers with a p-value, and all raise the alarm at the same level.

`FALSE_ALARM` is the probability that correct code alarms on one run of one detector, over the choice of the research
seed; exact for Gaussian variances, shifts and binomials, and close for the chi-square test of counts, whose expected
counts are kept above 50.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-6


def alarms(p_value: float) -> bool:
    """Whether this p-value is too small to be chance."""
    return p_value < FALSE_ALARM


def variance(samples: NDArray[np.float64], deviation: float) -> float:
    """Are these independent N(0, deviation**2), as far as their squares tell? Two-sided, exact."""
    total = float((samples**2).sum()) / deviation**2
    return 2 * min(stats.chi2.cdf(total, samples.size), stats.chi2.sf(total, samples.size))


def normality(samples: NDArray[np.float64], deviation: float) -> float:
    """Are these independent N(0, deviation**2), as far as their distribution tells? Kolmogorov and Smirnov."""
    return float(stats.kstest(samples.ravel() / deviation, "norm").pvalue)


def correlation(left: NDArray[np.float64], right: NDArray[np.float64], deviation: float) -> float:
    """Are these two lists of N(0, deviation**2) uncorrelated? Two-sided, by the normal law of their products' mean."""
    z = float((left * right).sum()) / deviation**2 / math.sqrt(left.size)
    return 2 * float(stats.norm.sf(abs(z)))


def pattern(counts: Any, probabilities: Any) -> float:
    """Do these counts of outcomes fit these probabilities? Outcomes expected fewer than 50 times are pooled."""
    counts, expected = np.asarray(counts, np.float64), np.sum(counts) * np.asarray(probabilities, np.float64)
    if (counts[expected == 0] > 0).any():
        return 0.0
    rare = expected < 50
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < 50:
        wanted[-2] += wanted[-1]
        observed[-2] += observed[-1]
        wanted, observed = wanted[:-1], observed[:-1]
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def share(successes: int, trials: int, probability: float) -> float:
    """Do so many successes fit this probability? Two-sided, exact."""
    return float(stats.binomtest(successes, trials, probability).pvalue)


def excess_shift(
    with_triple: NDArray[np.float64], without: NDArray[np.float64], bound: float, deviation: float
) -> float:
    """Does one triple move the mean of Gaussian releases by no more than `bound`? One-sided, exact at the bound."""
    spread = deviation * math.sqrt(1 / with_triple.size + 1 / without.size)
    return float(stats.norm.sf((with_triple.mean() - without.mean() - bound) / spread))
