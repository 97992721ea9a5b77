"""What a noisy copy says about single triples, to somebody who sees all that was released and knows all other triples.

A copy releases noisy counts and answers, and everything else follows from them. About one candidate triple

- its answer says plus or minus epsilon of the answers (log-likelihood ratio), and nothing if it was not asked;
- each of its two noisy counts, less the known triples, is a sum of coins plus geometric noise. What it says about one
  coin follows from what the rest says about the others, in a pass forwards and one backwards over the sum.

With one candidate in each count the sum of the three is the whole log-likelihood ratio, which no other score beats.
With several, heads and tails pass on what they say a few times (belief propagation), which comes close to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedkge.defences.counts.denoising import log_below, log_likelihood
from fedkge.defences.noisy_copy.expectation import Numbers
from fedkge.mechanisms.counts import NoisyCounts

PASSES = 3
"""How often heads and tails pass on what they say."""
LEAST = 1e-300
"""No probability counts as less."""

Cells = NDArray[np.int64]


def joint_ratios(counts: NoisyCounts, known: Cells, candidates: Cells, answers: Numbers) -> Numbers:
    """The log-likelihood ratio of each candidate, from what its answer says and from the noisy counts.

    `known` and `candidates` hold for each triple its cell as a tail and as a head (`profile_cells`).
    """
    as_tails, as_heads = np.zeros(len(candidates)), np.zeros(len(candidates))
    for _ in range(PASSES):
        as_tails = _counted(counts, known[:, 0], candidates[:, 0], answers + as_heads)
        as_heads = _counted(counts, known[:, 1], candidates[:, 1], answers + as_tails)
    return answers + as_tails + as_heads


def _counted(counts: NoisyCounts, known: NDArray[np.int64], cells: NDArray[np.int64], odds: Numbers) -> Numbers:
    """What one side's noisy counts say about each candidate, whose cell and odds so far (log) are given."""
    said, order = np.empty(len(cells)), np.argsort(cells, kind="stable")
    seen, base = _looked_up(cells, counts.keys, counts.values), _looked_up(cells, *np.unique(known, return_counts=True))
    for members in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        true = base[members[0]] + np.arange(len(members) + 1.0)
        if seen[members[0]] < counts.threshold:
            likelihood = log_below(counts.threshold, true, counts.scale)
        else:
            likelihood = log_likelihood(seen[members[:1]], true, counts.scale)[0]
        said[members] = told_by_sum(odds[members], likelihood)
    return said


def _looked_up(cells: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]) -> Numbers:
    """The value of each cell, 0 where it is not among the keys; those ascend."""
    if not len(keys):
        return np.zeros(len(cells))
    places = np.minimum(np.searchsorted(keys, cells), len(keys) - 1)
    return np.where(keys[places] == cells, values[places], 0).astype(np.float64)


def told_by_sum(odds: Numbers, likelihood: Numbers) -> Numbers:
    """What is said about each of n coins (log-likelihood ratio), if `likelihood[k]` is that of k heads among them all
    (log), and `odds` are what else is known about each (log).

    >>> told_by_sum(np.array([0.0, 9.0]), np.array([-2.0, 0.0, -2.0])).round(2).tolist()
    [-2.0, 0.0]
    """
    chances, said = expit(odds), np.empty(len(odds))
    later = [np.exp(likelihood - likelihood.max())]  # by heads so far, when all coins after these are averaged out
    for chance in chances[:0:-1]:
        later.append((1 - chance) * later[-1][:-1] + chance * later[-1][1:])
    before = np.ones(1)  # the chance of so many heads among the coins before
    for place, chance in enumerate(chances):
        rest = later[-1 - place]
        said[place] = np.log(max(before @ rest[1:], LEAST)) - np.log(max(before @ rest[:-1], LEAST))
        before = np.convolve(before, (1 - chance, chance))
    return said
