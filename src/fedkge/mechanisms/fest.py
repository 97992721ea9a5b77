"""Rows that are fixed before training: from public knowledge, or from one noisy histogram of degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import Gaussian, SampledGaussian
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Selected, Touched


@dataclass(frozen=True, slots=True, eq=False)
class Fest:
    """Releases the same `rows` in every step.

    Sensitivity: the joint clip, as for dense noise. Guarantee: each step is one Gaussian on a Poisson sample
    (docs/proofs/dense.md: leaving out rows that are fixed in advance is post-processing); a histogram costs one
    Gaussian over the whole data once, before the first step (docs/proofs/adafest.md), `histogram_event`.

    >>> Fest(np.array([4, 2], np.int32)).rows.tolist()
    [2, 4]
    """

    rows: NDArray[np.int32]
    histogram_multiplier: float | None = None
    """The noise of the histogram that the rows come from; None when they are public."""

    name: ClassVar[str] = "fest"
    is_private: ClassVar[bool] = True
    releases_all: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", np.unique(self.rows).astype(np.int32))

    @classmethod
    def of_histogram(
        cls, triples: NDArray[np.int32], table: int, keep: int, multiplier: float, source: NoiseSource
    ) -> Fest:
        """The `keep` rows with most triples by a noisy histogram of distinct triples (head, relation, tail).

        >>> star = np.array([[0, 0, row] for row in range(1, 90)] + [[0, 0, 0]], np.int32)
        >>> Fest.of_histogram(star, 100, 1, multiplier=1.0, source=NoiseSource.research(0)).rows.tolist()
        [0]
        """
        if not 0 < keep <= table:
            raise PrivacyError(f"expected to keep from 1 to {table} rows, got {keep}")
        noisy = degrees(triples, table) + source.gaussian(table, Touched.count_sensitivity * multiplier)
        return cls(np.argpartition(noisy, table - keep)[table - keep :].astype(np.int32), multiplier)

    def select(self, touched: Touched, source: NoiseSource) -> Selected:  # noqa: ARG002 - no coins needed
        """The fixed rows, whatever the batch touches."""
        return Selected(self.rows)

    def event(self, rate: float, multiplier: float) -> SampledGaussian:
        """One Gaussian on a Poisson sample; the histogram is charged apart, once."""
        return SampledGaussian(rate, multiplier)

    def histogram_event(self) -> Gaussian | None:
        """What the choice of rows cost, to be charged once; None when the rows are public."""
        return None if self.histogram_multiplier is None else Gaussian(self.histogram_multiplier)


def degrees(triples: NDArray[np.int32], table: int) -> NDArray[np.int64]:
    """How many triples hold each row; a self-loop counts once. Sensitivity: `Touched.count_sensitivity`.

    >>> degrees(np.array([[0, 0, 1], [1, 0, 1]], np.int32), 3).tolist()
    [1, 2, 0]
    """
    heads, tails = triples[:, 0], triples[:, 2]
    ends = np.concatenate((heads, tails[heads != tails]))
    return np.bincount(ends, minlength=table)
