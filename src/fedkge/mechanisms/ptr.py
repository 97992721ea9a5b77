"""Propose, test, release with sound constants: a private guess of how many rows stand out, and a test of that guess.

For study. At the paper's parameters (batch 64, multipliers 1) the test practically never passes: the norms of so few
clipped gradients cannot leave a gap that noise of this size would show. Dense noise is the default for a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import SampledTest
from fedkge.mechanisms.gap_selection import GapSelection
from fedkge.mechanisms.gaps import Ordered, candidates
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Selected, Touched


@dataclass(frozen=True, slots=True)
class Ptr(GapSelection):
    """Guesses by Gumbel noise where the sorted norms fall most, and releases the rows above if a noisy gap is wide.

    Sensitivity: one triple moves a gap by at most min(2 C2, sqrt(2) C1) and two gaps against each other by at most
    3 C2. Guarantee: with the release of the rows, a bounded range of 1.5 / gap_multiplier and two Gaussians, except
    with probability `failure`, on one Poisson sample; charged in full whether the test passes or not. Proof:
    docs/proofs/ptr.md. Work: O(batch + touched log touched), although gaps beyond the touched rows take part too.

    >>> from fedkge.mechanisms.clipping import Clip
    >>> few = Touched(np.array([5], np.int32), np.array([1]), np.array([1.2]), table=100)
    >>> selected = Ptr(Clip(1.2, 0.8), batch=1).select(few, NoiseSource.research(0))
    >>> selected.passed, selected.rows.tolist()
    (False, [])
    """

    name: ClassVar[str] = "ptr"
    is_private: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.batch >= 1 and self.gap_multiplier > 0 and self.test_multiplier > 0 and 0 < self.failure < 0.5):
            raise PrivacyError(f"expected positive numbers and a failure below one half, got {self}")

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        """The rows above the guessed gap if the test passes, else none."""
        numbers = candidates(self.batch, touched.table)
        ordered, bound = Ordered.of(touched), self.clip.gap_sensitivity
        gaps = ordered.gaps(numbers)
        guess = int(np.argmax(gaps + source.gumbel(len(numbers), self.clip.guess_scale * self.gap_multiplier)))
        deviation = self.test_multiplier * bound
        margin = -deviation * ndtri(self.failure)
        tested = max(bound, gaps[guess]) + source.gaussian(1, deviation)[0] - margin
        if tested > bound:
            return Selected(ordered.top(numbers[guess]), passed=True)
        return Selected(np.empty(0, dtype=np.int32), passed=False)

    def event(self, rate: float, multiplier: float) -> SampledTest:
        """The guess, the test and the release over one Poisson sample."""
        return SampledTest(rate, self.gap_multiplier, self.test_multiplier, multiplier, self.failure)
