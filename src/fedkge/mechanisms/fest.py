"""Rows that are fixed before training: from public knowledge, or from one noisy histogram of degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.events import Gaussian, SampledGaussian
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.selection import Built, Rows, Selected, Selection, SelectionSettings, Touched


@dataclass(frozen=True, slots=True, eq=False)
class Fest(Selection):
    """Releases the same `rows` in every step.

    Sensitivity: the joint clip, as for dense noise. Guarantee: each step is one Gaussian on a Poisson sample
    (docs/proofs/dense.md: leaving out rows that are fixed in advance is post-processing); a histogram costs one
    Gaussian over the whole data once, before the first step (docs/proofs/adafest.md), `events_once`.

    >>> Fest(np.array([4, 2], np.int32)).rows.tolist()
    [2, 4]
    """

    rows: NDArray[np.int32]
    histogram_multiplier: float | None = None
    """The noise of the histogram that the rows come from; None when they are public."""

    name: ClassVar[str] = "fest"
    is_private: ClassVar[bool] = True
    releases_all: ClassVar[bool] = False
    draws_once: ClassVar[bool] = True

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:
        """All of a step's noise is the gradient's; the histogram is paid once."""
        return cls(np.empty(0, np.int32) if rows is None else rows, cls._multiplier(settings)), settings.noise

    @classmethod
    def draw(cls, settings: SelectionSettings, triples: Rows, source: NoiseSource) -> Rows:
        """The rows with most triples, by the noisy histogram."""
        keep = max(1, round(settings.kept * settings.entities))
        return cls.of_histogram(triples, settings.entities, keep, cls._multiplier(settings), source).rows

    @staticmethod
    def _multiplier(settings: SelectionSettings) -> float:
        return float(settings.first_noise / settings.share**0.5)

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

    def events_once(self) -> tuple[Gaussian, ...]:
        """The histogram that the rows come from; nothing when they are public."""
        return () if self.histogram_multiplier is None else (Gaussian(self.histogram_multiplier),)


def degrees(triples: NDArray[np.int32], table: int) -> NDArray[np.int64]:
    """How many triples hold each row; a self-loop counts once. Sensitivity: `Touched.count_sensitivity`.

    >>> degrees(np.array([[0, 0, 1], [1, 0, 1]], np.int32), 3).tolist()
    [1, 2, 0]
    """
    heads, tails = triples[:, 0], triples[:, 2]
    ends = np.concatenate((heads, tails[heads != tails]))
    return np.bincount(ends, minlength=table)
