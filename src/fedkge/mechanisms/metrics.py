"""The mean of a figure over private held-out triples, released once: a noisy sum over a noisy number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.counts import two_sided
from fedkge.mechanisms.events import Figure
from fedkge.mechanisms.noise import NoiseSource

GRID = 2**16
"""A share is a whole number of this many parts. So sums are exact and have no low bits that could reveal a triple."""
SUM_PART = 2 / 3
"""Of the budget, for the sum; the number, which matters less where the mean is small, gets the rest."""


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """What was released: the sum of all shares, in parts of `GRID`, and their number, both with noise.

    Sensitivity: one held-out triple more or less changes the sum by at most `GRID` and the number by one. Guarantee:
    two-sided geometric noise on both makes the pair `epsilon`-differentially private without any delta, whatever is
    computed from it; it costs `event()`. Each share must be a function of its own triple and of what is public or was
    released: no filter by private triples. Proof: docs/proofs/metrics.md.

    >>> mean = NoisyMean.release(shares_of(np.full(1000, 0.25)), epsilon=5.0, source=NoiseSource.research(1))
    >>> round(mean.value, 2), abs(mean.number - 1000) < 10
    (0.25, True)
    """

    sensitivities: ClassVar[tuple[int, int]] = (GRID, 1)
    """How far one held-out triple moves the sum, and the number."""
    total: int
    number: int
    epsilon: float

    @classmethod
    def release(cls, shares: NDArray[np.int64], epsilon: float, source: NoiseSource) -> NoisyMean:
        """Add up the shares of distinct triples and count them, with noise."""
        if not 0 < epsilon < math.inf:
            raise PrivacyError(f"expected an epsilon above 0, got {epsilon}")
        if shares.dtype != np.int64 or shares.ndim != 1 or ((shares < 0) | (shares > GRID)).any():
            raise PrivacyError(f"expected one whole number from 0 to {GRID} for each triple, got other values")
        of_sum, of_number = cls.sensitivities
        total = int(shares.sum()) + int(two_sided(1, of_sum / (SUM_PART * epsilon), source)[0])
        number = len(shares) + int(two_sided(1, of_number / ((1 - SUM_PART) * epsilon), source)[0])
        return cls(total, number, float(epsilon))

    def event(self) -> Figure:
        """What the release costs, once: no epsilon-private release costs more than one randomised response."""
        return cost_of(self.epsilon)

    @property
    def value(self) -> float:
        """The mean, between 0 and 1."""
        return min(1.0, max(0.0, self.total / (GRID * max(1, self.number))))

    @property
    def deviation(self) -> float:
        """About how far the noise moves the mean, by what was released alone."""
        of_sum, of_number = (math.sqrt(2) / (part * self.epsilon) for part in (SUM_PART, 1 - SUM_PART))
        return min(1.0, math.hypot(of_sum, self.value * of_number) / max(1, self.number))


def shares_of(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Values from 0 to 1 in parts of `GRID`, each rounded by itself.

    >>> shares_of(np.array([0.0, 0.5, 1.0])).tolist()
    [0, 32768, 65536]
    """
    return np.rint(np.clip(values, 0.0, 1.0) * GRID).astype(np.int64)


def cost_of(epsilon: float) -> Figure:
    """The event of a release that is epsilon-differentially private without any delta.

    >>> cost_of(0.5).epsilon
    0.5
    """
    return Figure(epsilon)
