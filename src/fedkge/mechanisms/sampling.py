"""Poisson sampling: every triple is in a batch by a coin of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.noise import NoiseSource


@dataclass(frozen=True, slots=True)
class PoissonSampling:
    """Takes each triple independently with probability `rate`.

    Guarantees:
        The law of n independent coins, which amplification by sampling rests on (docs/proofs/composition.md): first how
        many heads (binomial), then which ones (uniform among all sets of that size). Batches differ in size, may be
        empty and are never cut off; the next batch does not depend on this one.

    >>> PoissonSampling(0.5).draw(4, NoiseSource.research(3)).dtype
    dtype('int64')
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise PrivacyError(f"expected a sampling rate above 0 and at most 1, got {self.rate}")

    def draw(self, count: int, source: NoiseSource) -> NDArray[np.int64]:
        """The positions of one batch out of `count`, distinct, in no particular order; work in the order of the batch.

        >>> sorted(PoissonSampling(1.0).draw(3, NoiseSource.research(3)).tolist())
        [0, 1, 2]
        """
        size = int(source.generator.binomial(count, self.rate))
        return source.generator.choice(count, size, replace=False, shuffle=False)
