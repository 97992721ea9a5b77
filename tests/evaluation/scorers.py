"""Scorers with known scores, and the plainest ranking that can be written: what the fast one must equal."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.graph import Side, Triples


@dataclass(frozen=True)
class TableScorer:
    """Any score for any triple, from a table of shape (entities, relations, entities)."""

    table: NDArray[np.float32]

    @property
    def candidates(self) -> int:
        return self.table.shape[0]

    def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        head, relation, tail = triples.T
        out[:] = self.table[head, relation] if side == "tail" else self.table[:, relation, tail].T


def brute_force(
    table: NDArray[np.float32], triples: Triples, known: Triples, side: Side, allowed: set[int] | None = None
) -> list[tuple[int, int, int]]:
    """(optimistic, pessimistic, candidates) per triple, one comparison at a time."""
    facts = set(map(tuple, known.tolist()))
    results = []
    for head, relation, tail in triples.tolist():
        truth, greater, equal, left = table[head, relation, tail], 0, 0, 1
        for entity in range(table.shape[0]):
            other = (head, relation, entity) if side == "tail" else (entity, relation, tail)
            if other == (head, relation, tail) or other in facts or (allowed is not None and entity not in allowed):
                continue
            score = table[other]
            greater, equal, left = greater + int(score > truth), equal + int(score == truth), left + 1
        results.append((greater + 1, greater + equal + 1, left))
    return results
