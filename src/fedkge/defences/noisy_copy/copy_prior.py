"""A score for every answer from a copy's expected counts: how often is it the answer for this relation?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.defences.counts.count_prior import UNSEEN
from fedkge.defences.counts.denoising import Profile
from fedkge.graph import HEAD, RELATION, TAIL, Side, Triples


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class CopyPrior:
    """`weight` times the logarithm of an answer's expected count; what an embedding's score is added to."""

    expected: Profile
    weight: float

    def add_scores(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Add to `out[i, j]` the score of triple i after its `side` became entity j."""
        for row, where in self._questions(triples, side):
            out[where] += self._scores(row)

    def of_triples(self, triples: Triples, side: Side) -> NDArray[np.float32]:
        """The score of each triple's own answer."""
        scores, answers = np.empty(len(triples), np.float32), triples[:, TAIL if side == "tail" else HEAD]
        for row, where in self._questions(triples, side):
            scores[where] = self._scores(row)[answers[where]]
        return scores

    def _questions(self, triples: Triples, side: Side) -> list[tuple[int, NDArray[np.int64]]]:
        rows = triples[:, RELATION].astype(np.int64) + (0 if side == "tail" else len(self.expected.rows) // 2)
        return [(int(row), np.flatnonzero(rows == row)) for row in np.unique(rows)]

    def _scores(self, row: int) -> NDArray[np.float32]:
        counts = self.expected.rows[row].full(self.expected.entities)
        return np.asarray(self.weight * np.log(counts + UNSEEN), np.float32)
