"""The compiled half of ranking: from a block of scores to how many candidates beat each true answer."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

FLOAT32_MAX = np.float32(np.finfo(np.float32).max)


@njit(cache=True, nogil=True)  # no fastmath: NaN must stay NaN
def _finite(row: NDArray[np.float32]) -> bool:
    """Whether all scores are finite. Counts in integers, so that the loop vectorises."""
    good = 0
    for j in range(row.shape[0]):
        good += np.abs(row[j]) <= FLOAT32_MAX
    return bool(good == row.shape[0])


@njit(cache=True, nogil=True)
def _compare(row: NDArray[np.float32], score: np.float32) -> tuple[int, int]:
    """How many scores are greater than `score`, how many equal it."""
    greater = 0
    equal = 0
    for j in range(row.shape[0]):
        greater += row[j] > score
        equal += row[j] == score
    return greater, equal


@njit(cache=True, nogil=True)
def count_block(
    scores: NDArray[np.float32],
    first: int,
    starts: NDArray[np.int64],
    answers: NDArray[np.int64],
    known: NDArray[np.int64],
    known_starts: NDArray[np.int64],
    greater: NDArray[np.int64],
    equal: NDArray[np.int64],
    candidates: NDArray[np.int64],
) -> int:
    """Count for the groups `first, first + 1, ...`, one per row of `scores`; -1, or the first group with a bad score.

    Writes `greater`, `equal` (both without the true answer) and `candidates` (with it) at the positions
    `starts[g] .. starts[g + 1]` of the group's triples. Known answers are read from the same row as all the rest
    and taken out again, so equality of floats is exact. No array is written outside the block's own positions.
    """
    width = scores.shape[1]
    for i in range(scores.shape[0]):
        group = first + i
        row = scores[i]
        if not _finite(row):
            return group
        filtered = known[known_starts[group] : known_starts[group + 1]]
        filtered_scores = row[filtered]
        for query in range(starts[group], starts[group + 1]):
            answer = answers[query]
            score = row[answer]
            more, same = _compare(row, score)
            known_more, known_same = _compare(filtered_scores, score)
            is_known = 0
            for j in range(filtered.shape[0]):
                is_known += filtered[j] == answer
            greater[query] = more - known_more
            equal[query] = same - known_same + is_known - 1
            candidates[query] = width - filtered.shape[0] + is_known
    return -1
