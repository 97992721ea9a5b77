"""Rows by lottery: each step releases a random half of the entity rows, drawn without a look at the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedkge.mechanisms.events import SampledGaussian
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Built, Rows, Selected, Selection, SelectionSettings, Touched


@dataclass(frozen=True, slots=True)
class Lottery(Selection):
    """Sensitivity: the joint clip. Guarantee: one Gaussian on a Poisson sample (docs/proofs/dense.md).

    The coins do not depend on triples, so leaving rows out is post-processing of dense noise and costs nothing.
    """

    name: ClassVar[str] = "lottery"
    is_private: ClassVar[bool] = True
    releases_all: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:
        """The gradient gets all of the noise budget."""
        return cls(), settings.noise

    def select(self, touched: Touched, source: NoiseSource) -> Selected:
        """One coin per row."""
        coins = source.gaussian(touched.table, 1.0) > 0
        return Selected(np.flatnonzero(coins).astype(np.int32))

    def event(self, rate: float, multiplier: float) -> SampledGaussian:
        """One Gaussian on a Poisson sample."""
        return SampledGaussian(rate, multiplier)
