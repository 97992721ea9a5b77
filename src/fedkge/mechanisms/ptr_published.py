"""Algorithm 2 of the paper as it is printed. NOT PRIVATE: kept to reproduce its numbers, and labelled so everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import PublishedTest
from fedkge.mechanisms.gap_selection import GapSelection
from fedkge.mechanisms.gaps import Ordered, candidates
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Selected, Touched


@dataclass(frozen=True, slots=True)
class PtrPublished(GapSelection):
    """The paper's private selection. It is not private as claimed: a gap can move by more than C2.

    Its event is priced by the formulas that the paper prints. Why neither holds: docs/proofs/published.md.

    >>> from fedkge.mechanisms.clipping import Clip
    >>> few = Touched(np.array([5], np.int32), np.array([1]), np.array([1.2]), table=100)
    >>> selected = PtrPublished(Clip(1.2, 0.8), batch=1).select(few, NoiseSource.research(0))
    >>> selected.passed, PtrPublished.is_private
    (False, False)
    """

    name: ClassVar[str] = "ptr-published"
    is_private: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.batch >= 1 and self.gap_multiplier > 0 and self.test_multiplier > 0 and 0 < self.failure < 1):
            raise PrivacyError(f"expected positive numbers and a failure below 1, got {self}")

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        """Lines 1 to 9 of Algorithm 2, with the regulariser r as the set of candidates that it leaves."""
        numbers = candidates(self.batch, touched.table)
        ordered, row_clip = Ordered.of(touched), self.clip.row_bound
        gaps = ordered.gaps(numbers)
        guess = int(np.argmax(gaps + source.gumbel(len(numbers), 2 * row_clip * self.gap_multiplier)))
        deviation = self.test_multiplier * row_clip
        margin = deviation * math.sqrt(2 * math.log(1 / self.failure))
        tested = max(row_clip, gaps[guess]) + source.gaussian(1, deviation)[0] - margin
        if tested > row_clip:
            return Selected(ordered.top(numbers[guess]), passed=True)
        return Selected(np.empty(0, dtype=np.int32), passed=False)

    def event(self, rate: float, multiplier: float, passed: float = 1.0) -> PublishedTest:
        """The step by the paper's formulas, where a share of `passed` steps pays for its gradient."""
        return PublishedTest(rate, self.gap_multiplier, self.test_multiplier, multiplier, self.failure, passed)
