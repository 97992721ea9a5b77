"""What noisy counts say about the true ones: post-processing, which costs no privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from fedkge.base.short_repr import short_repr
from fedkge.mechanisms.counts import NoisyCounts

Numbers = NDArray[np.float64]

SMALL_COUNTS = 16
"""True counts below this are possible whether or not a noisy count shows them."""
ROUNDS = 40
"""Of expectation-maximisation."""
SHAPE = 5.0
"""Of the gamma distribution that says how far a type's count may lie from what popularity lets expect."""
LEAST_RATE, MOST_RATE, RATES = 1e-6, 1e3, 96
"""The grid of expected counts on which posterior means are tabulated."""


def log_likelihood(observed: Numbers, true: Numbers, scale: float) -> Numbers:
    """Log-probability of each noisy count under each true one, but for a constant."""
    return -np.abs(observed[:, np.newaxis] - true[np.newaxis, :]) / scale + math.log(math.tanh(0.5 / scale))


def log_below(threshold: int, true: Numbers, scale: float) -> Numbers:
    """Log-probability that a cell with each true count stays below the threshold.

    >>> np.exp(log_below(1, np.array([0.0, 5.0]), scale=1.0)).round(3).tolist()
    [0.731, 0.005]
    """
    room, fall = threshold - 1 - true, math.exp(-1 / scale)
    above = np.log1p(-np.minimum(fall ** np.maximum(room + 1, 0), 1) / (1 + fall))
    return np.where(room >= 0, above, np.minimum(room, 0) / scale - math.log1p(fall))


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Expected counts of all entities for one relation and side: those that are listed, and `rest` for all others."""

    entities: NDArray[np.int64]
    means: Numbers
    rest: float

    def full(self, size: int) -> Numbers:
        """One number per entity.

        >>> Row(np.array([2]), np.array([7.0]), rest=0.5).full(3).tolist()
        [0.5, 0.5, 7.0]
        """
        row = np.full(size, self.rest)
        row[self.entities] = self.means
        return row


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Expected true counts for every relation and side: row k of k = relation for tails, relations + it for heads."""

    entities: int
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, counts: NoisyCounts, entities: int) -> Profile:
        """Each row on its own: the distribution of true counts that explains its noisy ones best, then their means."""
        number = counts.size // entities
        ends = np.searchsorted(counts.keys, np.arange(number + 1) * entities)
        rows = []
        for row in range(number):
            part = slice(ends[row], ends[row + 1])
            places, values = counts.keys[part] - row * entities, counts.values[part].astype(np.float64)
            rows.append(_deconvolved(places, values, entities, counts))
        return cls(entities, tuple(rows))


def _deconvolved(places: NDArray[np.int64], values: Numbers, entities: int, counts: NoisyCounts) -> Row:
    """Maximum likelihood by expectation-maximisation over the histogram of noisy counts, the unseen as one bin."""
    seen, which, times = np.unique(values, return_inverse=True, return_counts=True)
    largest = min(SMALL_COUNTS, int(seen[-1]) if len(seen) else 1)
    true = np.unique(np.concatenate((np.arange(largest + 1.0), seen)))
    weights = np.concatenate(([entities - len(values)], times)).astype(np.float64)
    below = log_below(counts.threshold, true, counts.scale)
    likelihood = np.exp(np.vstack((below, log_likelihood(seen, true, counts.scale))))
    share = np.full(len(true), 1 / len(true))
    for _ in range(ROUNDS):
        joint = likelihood * share
        share = weights @ (joint / joint.sum(axis=1, keepdims=True)) / entities
    joint = likelihood * share
    means = joint @ true / joint.sum(axis=1)
    return Row(places, means[1:][which], float(means[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Expected true counts, given a noisy count (or that it stayed below the threshold) and the count that popularity
    lets expect; before the noise, a count is gamma-Poisson with that mean.

    >>> posterior = Posterior.of(scale=1.0, threshold=2)
    >>> posterior.below(np.array([0.01, 5.0])).round(2).tolist()
    [0.01, 1.41]
    >>> posterior.seen(np.array([9]), np.array([5.0])).round(1).tolist()
    [8.4]
    """

    threshold: int
    table: Numbers
    """By noisy count, the first row for all below the threshold, and by the logarithm of the expected count."""

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, scale: float, threshold: int) -> Posterior:
        """The table for this noise."""
        last = threshold + 32 + math.ceil(8 * scale)
        true = np.arange(last + 33.0 + math.ceil(8 * scale))
        below = log_below(threshold, true, scale)
        observed = np.vstack((below, log_likelihood(np.arange(threshold, last + 1.0), true, scale)))
        table = np.empty((len(observed), RATES))
        for place, rate in enumerate(np.geomspace(LEAST_RATE, MOST_RATE, RATES)):
            joint = observed + _log_gamma_poisson(true, rate)
            weights = np.exp(joint - joint.max(axis=1, keepdims=True))
            table[:, place] = weights @ true / weights.sum(axis=1)
        return cls(threshold, table)

    def below(self, rates: Numbers) -> Numbers:
        """For cells of which only that is known."""
        return self._read(np.zeros(rates.shape, np.int64), rates)

    def seen(self, values: NDArray[np.int64], rates: Numbers) -> Numbers:
        """For cells with these noisy counts; a count beyond the table is what it is."""
        rows = values - self.threshold + 1
        return np.where(rows < len(self.table), self._read(np.minimum(rows, len(self.table) - 1), rates), values)

    def _read(self, rows: NDArray[np.int64], rates: Numbers) -> Numbers:
        step = math.log(MOST_RATE / LEAST_RATE) / (RATES - 1)
        place = np.log(np.clip(rates, LEAST_RATE, MOST_RATE) / LEAST_RATE) / step
        left = np.minimum(place.astype(np.int64), RATES - 2)
        part = place - left
        return np.asarray((1 - part) * self.table[rows, left] + part * self.table[rows, left + 1])


def _log_gamma_poisson(counts: Numbers, mean: float) -> Numbers:
    chance = SHAPE / (SHAPE + mean)
    return np.asarray(
        gammaln(counts + SHAPE) - gammaln(counts + 1) + counts * math.log1p(-chance) + SHAPE * math.log(chance)
        if chance < 1
        else np.where(counts == 0, 0.0, -np.inf)
    )
