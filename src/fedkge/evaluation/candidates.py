"""The seam between ranking and whatever gives scores: an embedding, or plain counts."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedkge.graph import Side, Triples


class CandidateScorer(Protocol):
    """Scores every candidate entity for one missing side of some triples; higher is more plausible."""

    @property
    def candidates(self) -> int:
        """How many candidate entities there are."""
        ...

    def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Fill `out[i, j]` with the score of triple i after its `side` became candidate j.

        `out` has shape (len(triples), candidates). Called from several threads at once.
        """
        ...
