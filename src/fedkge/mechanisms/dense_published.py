"""The paper's baseline as it is printed. NOT PRIVATE: kept to reproduce its numbers, and labelled so everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedkge.mechanisms.events import PublishedGaussian
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Built, Rows, Selected, Selection, SelectionSettings, Touched


@dataclass(frozen=True, slots=True)
class DensePublished(Selection):
    """DPSGD as Algorithm 1 prints it without its blue lines: noise on all entity rows, relations take raw gradients.

    Its event is priced by the formula that the paper prints. Why neither holds: docs/proofs/published.md.

    >>> nothing = Touched(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0), table=2)
    >>> DensePublished().select(nothing, NoiseSource.research(0)).rows.tolist(), DensePublished.is_private
    ([0, 1], False)
    """

    name: ClassVar[str] = "dense-published"
    is_private: ClassVar[bool] = False
    releases_all: ClassVar[bool] = True

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:  # noqa: ARG003 - has no options
        """All of the noise is the gradient's."""
        return cls(), settings.noise

    def select(self, touched: Touched, source: NoiseSource) -> Selected:  # noqa: ARG002 - no coins needed
        """All rows."""
        return Selected(np.arange(touched.table, dtype=np.int32))

    def event(self, rate: float, multiplier: float) -> PublishedGaussian:
        """The step by the paper's formula; every sound accountant answers that it guarantees nothing."""
        return PublishedGaussian(rate, multiplier)
