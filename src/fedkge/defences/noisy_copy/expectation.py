"""How many triples are to be expected in each cell (head, relation, tail), by counts of heads and of tails alone."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.defences.counts.denoising import Profile

Numbers = NDArray[np.float64]
Cells = NDArray[np.int64]

SMALLEST = sys.float_info.min
"""No rate is asked for that is less: at an epsilon of many hundreds a lie has no chance that a number could hold."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The expected counts of all entities as heads and as tails of one relation. A cell's `rate` is their product over
    the relation's size, as if heads and tails met by chance.

    >>> ends = Ends(np.array([2.0, 0.0]), np.array([0.5, 1.5]))
    >>> ends.rates(np.array([0, 0]), np.array([0, 1])).tolist()
    [0.5, 1.5]
    """

    heads: Numbers
    tails: Numbers

    @property
    def size(self) -> float:
        """About so many triples has the relation."""
        return float(max(0.5 * (self.heads.sum() + self.tails.sum()), 1.0))

    @property
    def largest(self) -> float:
        """No cell has a larger rate."""
        return float(self.heads.max(initial=0) * self.tails.max(initial=0) / self.size)

    def rates(self, heads: Cells, tails: Cells) -> Numbers:
        """The expected number of triples in each of these cells."""
        return np.asarray(self.heads[heads] * self.tails[tails] / self.size)

    def reach(self, least: float) -> Cells:
        """For each head, how many of the most frequent tails make a cell with at least this rate."""
        return _reach(self.heads, np.sort(self.tails)[::-1], least * self.size)

    def cells(self, least: float) -> tuple[Cells, Cells]:
        """All heads and tails whose cell has at least this rate."""
        reach, order = self.reach(least), np.argsort(-self.tails, kind="stable")
        heads = np.repeat(np.arange(len(reach)), reach)
        within = np.arange(len(heads)) - np.repeat(np.cumsum(reach) - reach, reach)
        return heads, order[within].astype(np.int64)

    def covered(self, least: float) -> tuple[Numbers, Numbers]:
        """For each head, and for each tail, the sum of its rates that are at least this."""
        return _covered(self.heads, self.tails, least, self.size), _covered(self.tails, self.heads, least, self.size)


def _reach(values: Numbers, falling: Numbers, least: float) -> Cells:
    """For each value, how many of the others, from the largest, have a product with it of at least this."""
    needed = np.where(values > 0, least / np.maximum(values, 1e-300), np.inf)
    return np.searchsorted(-falling, -needed, side="right").astype(np.int64)


def _covered(values: Numbers, others: Numbers, least: float, size: float) -> Numbers:
    falling = np.sort(others)[::-1]
    sums = np.concatenate(([0.0], np.cumsum(falling)))
    return np.asarray(values * sums[_reach(values, falling, least * size)] / size)


def ends_of(profile: Profile) -> Iterator[Ends]:
    """Both ends of each relation."""
    relations = len(profile.rows) // 2
    for relation in range(relations):
        heads, tails = profile.rows[relations + relation], profile.rows[relation]
        yield Ends(heads.full(profile.entities), tails.full(profile.entities))


def asked_cells(profile: Profile, least: float) -> Cells:
    """The cells with at least this rate, ascending; cell (h, r, t) is number (r * entities + h) * entities + t."""
    found = []
    for relation, ends in enumerate(ends_of(profile)):
        heads, tails = ends.cells(least)
        found.append((relation * profile.entities + heads) * profile.entities + tails)
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def least_rate(profile: Profile, wanted: float, most: int) -> float:
    """The wanted rate, or a larger one for which no more than so many cells are asked."""
    largest, rates = max((ends.largest for ends in ends_of(profile)), default=0.0), [max(wanted, SMALLEST)]
    while rates[-1] <= 2 * largest:
        rates.append(rates[-1] * 1.25)
    few = bisect_left(
        rates, True, key=lambda rate: sum(int(ends.reach(rate).sum()) for ends in ends_of(profile)) <= most
    )
    return rates[few]
