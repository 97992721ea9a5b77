"""Dense noise: every row is released, so nothing is selected and nothing is paid for a selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedkge.mechanisms.events import SampledGaussian
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Built, Rows, Selected, Selection, SelectionSettings, Touched


@dataclass(frozen=True, slots=True)
class Dense(Selection):
    """DPSGD: noise on all entity rows and all relation rows.

    Sensitivity: the joint clip, over both tables. Guarantee: one Gaussian on a Poisson sample. Proof:
    docs/proofs/dense.md. It suits negatives inside the clipped gradient, because it releases all rows that they touch.

    >>> nothing = Touched(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0), table=3)
    >>> Dense().select(nothing, NoiseSource.research(0)).rows.tolist()
    [0, 1, 2]
    """

    name: ClassVar[str] = "dense"
    is_private: ClassVar[bool] = True
    releases_all: ClassVar[bool] = True

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:  # noqa: ARG003 - has no options
        """All of the noise is the gradient's."""
        return cls(), settings.noise

    def select(self, touched: Touched, source: NoiseSource) -> Selected:  # noqa: ARG002 - no coins needed
        """All rows."""
        return Selected(np.arange(touched.table, dtype=np.int32))

    def event(self, rate: float, multiplier: float) -> SampledGaussian:
        """One Gaussian on a Poisson sample."""
        return SampledGaussian(rate, multiplier)
