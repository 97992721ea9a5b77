"""Rows whose noisy count of triples reaches a threshold: selection by Gaussians only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import SampledPair
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import (
    Built,
    Rows,
    Selected,
    Selection,
    SelectionSettings,
    Touched,
    rows_outside,
)


@dataclass(frozen=True, slots=True)
class Adafest(Selection):
    """Releases the rows j with count_j + N(0, 2 selection_multiplier**2) >= threshold.

    Sensitivity: a triple adds 1 to the counts of at most two rows: `Touched.count_sensitivity`. The deviation is
    that times `selection_multiplier`. Guarantee: with the release of the chosen rows, two Gaussians on one Poisson
    sample, composed first and amplified once. Proof: docs/proofs/adafest.md. The threshold is free.

    Rows that no triple touches pass by noise alone and are released like the rest: skipping them would tell which rows
    are real. How many do is binomial and which ones uniform, so the work is that of the rows chosen and touched.

    >>> touched = Touched(np.array([5], np.int32), np.array([90]), np.array([1.0]), table=1000)
    >>> Adafest(selection_multiplier=1.0, threshold=9.0).select(touched, NoiseSource.research(0)).rows.tolist()
    [5]
    """

    selection_multiplier: float
    threshold: float

    name: ClassVar[str] = "adafest"
    is_private: ClassVar[bool] = True
    releases_all: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:  # noqa: ARG003 - drawn per step
        """Selection and gradient share the step's noise."""
        selection, gradient = cls.split(settings.noise, settings.share)
        return cls(selection, settings.threshold), gradient

    def __post_init__(self) -> None:
        if not (0 < self.selection_multiplier < math.inf and math.isfinite(self.threshold)):
            raise PrivacyError(f"expected a positive multiplier and a finite threshold, got {self}")

    @property
    def deviation(self) -> float:
        """The deviation of the noise on a count."""
        return Touched.count_sensitivity * self.selection_multiplier

    @property
    def false_positive_rate(self) -> float:
        """How probable it is that a row without triples is released."""
        return 0.5 * math.erfc(self.threshold / self.deviation / math.sqrt(2))

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        """The rows whose noisy count reaches the threshold."""
        noisy = touched.counts + source.gaussian(len(touched.rows), self.deviation)
        untouched = touched.table - len(touched.rows)
        false_positives = int(source.generator.binomial(untouched, self.false_positive_rate))
        ranks = source.generator.choice(untouched, false_positives, replace=False, shuffle=False)
        chosen = np.concatenate((touched.rows[noisy >= self.threshold], rows_outside(touched.rows, ranks)))
        return Selected(np.sort(chosen))

    def event(self, rate: float, multiplier: float) -> SampledPair:
        """Two Gaussians, on counts and on gradients, over one Poisson sample."""
        return SampledPair(rate, selection=self.selection_multiplier, gradient=multiplier)

    @staticmethod
    def split(total: float, share: float) -> tuple[float, float]:
        """The multipliers of selection and gradient that together cost as much as one Gaussian of `total`.

        `share` of the privacy, in terms of 1 / multiplier**2, goes to the selection.

        >>> selection, gradient = Adafest.split(total=1.0, share=0.2)
        >>> round(selection**-2, 6), round(gradient**-2, 6)
        (0.2, 0.8)
        """
        if not 0 < share < 1:
            raise PrivacyError(f"expected a share for selection between 0 and 1, got {share}")
        return total / math.sqrt(share), total / math.sqrt(1 - share)
