"""What a copy's questions followed from: the noisy counts, and how likely a triple must be to be asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.defences.counts.denoising import Profile
from fedkge.defences.noisy_copy.expectation import Cells, asked_cells
from fedkge.mechanisms.counts import NoisyCounts


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """All of it is released, or follows from what is. A client keeps it beside its answers; no model needs it.

    >>> counts = NoisyCounts(size=6, scale=0.1, threshold=1, keys=np.array([1, 3, 5]), values=np.array([2, 1, 1]))
    >>> Questions(counts, entities=3, least=0.5).among(np.array([1, 4, 7])).tolist()
    [True, False, True]
    """

    counts: NoisyCounts
    entities: int
    least: float
    """Cells of at least this rate were asked."""

    def among(self, cells: Cells) -> NDArray[np.bool_]:
        """Which of these cells were asked."""
        return np.isin(cells, asked_cells(Profile.of(self.counts, self.entities), self.least))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The questions as plain arrays, for a file."""
        return {
            "count_keys": self.counts.keys,
            "count_values": self.counts.values,
            "count_threshold": np.array([self.counts.threshold], np.int64),
            "count_scale": np.array([self.counts.scale], np.float64),
            "least": np.array([self.least], np.float64),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], entities: int, relations: int) -> Questions | None:
        """The questions that `arrays` was made from; None where there are none in it, as in a model."""
        if "least" not in arrays:
            return None
        scale, threshold = float(arrays["count_scale"][0]), int(arrays["count_threshold"][0])
        size = 2 * relations * entities
        counts = NoisyCounts(size, scale, threshold, arrays["count_keys"], arrays["count_values"])
        return cls(counts, entities, float(arrays["least"][0]))
