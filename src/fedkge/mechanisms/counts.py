"""Counts of triples, released once with geometric noise; a large table keeps only the counts that exceed the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.base.short_repr import short_repr
from fedkge.mechanisms.events import Geometric
from fedkge.mechanisms.noise import NoiseSource

MOST_FALSE = 2**19
"""About how many empty cells are kept at most because of their noise. It sets the threshold, with public sizes."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """The cells of a table of counts whose noisy count reaches `threshold`; of all others only that is known.

    Sensitivity: a triple raises `Geometric.cells` (two) different cells by one each; `release` refuses other tables.
    Guarantee: two-sided geometric noise of `scale` on every cell, empty ones included, costs `event()`: each of the two
    cells is a randomised response with odds exp(1 / scale). The threshold, from public numbers, is post-processing.
    Proof: docs/proofs/counts.md. The noise is whole numbers: it has no low bits that could tell sums apart.

    >>> cells = np.array([[0, 12]] * 50 + [[3, 12]])
    >>> counts = NoisyCounts.release(cells, size=20, scale=0.1, source=NoiseSource.research(3))
    >>> counts.keys.tolist(), counts.values.tolist(), counts.threshold
    ([0, 3, 12], [50, 1, 51], 1)
    """

    size: int
    """Cells of the whole table."""
    scale: float
    threshold: int
    keys: NDArray[np.int64]
    values: NDArray[np.int64]

    @classmethod
    def release(cls, cells: NDArray[np.int64], size: int, scale: float, source: NoiseSource) -> NoisyCounts:
        """Count the two cells that each distinct triple raises (one row per triple), and add noise."""
        if cells.ndim != 2 or cells.shape[1] != Geometric.cells or (np.diff(np.sort(cells, axis=1)) == 0).any():
            raise PrivacyError(
                f"expected {Geometric.cells} different cells for each triple, got an array of shape {cells.shape}"
            )
        if len(cells) and not 0 <= cells.min() <= cells.max() < size:
            raise PrivacyError(f"expected cells from 0 to {size - 1}, got {cells.min()} to {cells.max()}")
        threshold = threshold_for(size, scale)
        raised, counts = np.unique(cells, return_counts=True)
        noisy = counts + two_sided(len(raised), scale, source)
        false, beyond = _false_cells(raised.astype(np.int64), size, scale, threshold, source)
        kept = noisy >= threshold
        keys, values = np.concatenate((raised[kept], false)), np.concatenate((noisy[kept], beyond))
        order = np.argsort(keys)
        return cls(size, scale, threshold, keys[order].astype(np.int64), values[order].astype(np.int64))

    def event(self) -> Geometric:
        """The event that the release is charged as, once."""
        return Geometric(self.scale)


def threshold_for(size: int, scale: float) -> int:
    """The least noisy count that is kept.

    >>> threshold_for(size=1_000_000, scale=0.5), threshold_for(size=30_000_000, scale=1.0)
    (1, 4)
    """
    fall = math.exp(-1 / scale)
    return max(1, math.ceil(scale * math.log(size / ((1 + fall) * MOST_FALSE))))


def two_sided(size: int, scale: float, source: NoiseSource) -> NDArray[np.int64]:
    """Independent whole numbers k with probabilities proportional to exp(-|k| / scale)."""
    stop = -math.expm1(-1 / scale)
    generator = source.generator
    return generator.geometric(stop, size) - generator.geometric(stop, size)


def _false_cells(
    raised: NDArray[np.int64], size: int, scale: float, threshold: int, source: NoiseSource
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The empty cells whose noise reaches the threshold: their number is binomial, their places are uniform, and what
    they exceed it by is geometric. The same law as noise on every one of them.
    """
    fall, generator = math.exp(-1 / scale), source.generator
    number = int(generator.binomial(size - len(raised), fall**threshold / (1 + fall)))
    places = np.empty(0, np.int64)
    while len(places) < number:
        drawn = generator.integers(0, size, number - len(places) + 16)
        near = np.minimum(np.searchsorted(raised, drawn), max(0, len(raised) - 1))
        empty = drawn[raised[near] != drawn] if len(raised) else drawn
        places = np.concatenate((places, empty))
        _, first = np.unique(places, return_index=True)
        places = places[np.sort(first)]  # in the order of drawing: what is cut off below is a uniform choice
    return places[:number], threshold + generator.geometric(-math.expm1(-1 / scale), number) - 1
