"""Ranks: what to do with ties, and the metrics that follow from ranks.

A true answer that shares its score with k others could stand first or last among them. The optimistic rank puts it
first, the pessimistic one last; the realistic rank is their mean, the expected place under a random order. fedkge
reports the realistic one: a model that gives every candidate the same score then gets the rank of chance, not rank 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr

HITS = (1, 3, 10)


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """One rank per query, best is 1, for both ways to read a tie.

    `candidates` is how many answers stood for choice in each query after filtering, the true one included.

    >>> ranks = Ranks.from_counts(greater=np.array([0, 2]), equal=np.array([3, 0]), candidates=np.array([10, 10]))
    >>> ranks.optimistic.tolist(), ranks.pessimistic.tolist(), ranks.realistic.tolist()
    ([1, 3], [4, 3], [2.5, 3.0])
    """

    optimistic: NDArray[np.int64]
    pessimistic: NDArray[np.int64]
    candidates: NDArray[np.int64]

    @classmethod
    def from_counts(cls, greater: NDArray[np.int64], equal: NDArray[np.int64], candidates: NDArray[np.int64]) -> Ranks:
        """Ranks from how many *other* candidates score more than the true answer, and how many the same."""
        return cls(optimistic=greater + 1, pessimistic=greater + equal + 1, candidates=candidates)

    @classmethod
    def concatenate(cls, parts: Iterable[Ranks]) -> Ranks:
        """All ranks of several sets, one after the other."""
        chosen = list(parts)
        return cls(
            optimistic=np.concatenate([part.optimistic for part in chosen]),
            pessimistic=np.concatenate([part.pessimistic for part in chosen]),
            candidates=np.concatenate([part.candidates for part in chosen]),
        )

    @property
    def realistic(self) -> NDArray[np.float64]:
        """Mean of the optimistic and the pessimistic rank; halves are possible."""
        return (self.optimistic + self.pessimistic) / 2.0

    def __len__(self) -> int:
        return len(self.optimistic)


def mean_reciprocal_rank(ranks: Ranks) -> float:
    """Mean of 1 / realistic rank; 1 is perfect.

    >>> mean_reciprocal_rank(Ranks.from_counts(np.array([0, 1]), np.array([0, 0]), np.array([5, 5])))
    0.75
    """
    return float(np.mean(1.0 / ranks.realistic))


def mean_rank(ranks: Ranks) -> float:
    """Mean of the realistic rank; 1 is perfect.

    >>> mean_rank(Ranks.from_counts(np.array([0, 1]), np.array([0, 1]), np.array([5, 5])))
    1.75
    """
    return float(np.mean(ranks.realistic))


def adjusted_mean_rank_index(ranks: Ranks) -> float:
    """1 - (MR - 1) / (E[MR] - 1): 1 is perfect, 0 is chance, below 0 is worse than chance.

    A random order of n candidates puts the true one at (n + 1) / 2 on average; E[MR] is the mean of that over the
    queries, each with its own n. With one candidate per query nothing can be learned from ranks: the index is 0.

    >>> adjusted_mean_rank_index(Ranks.from_counts(np.array([0]), np.array([4]), np.array([5])))
    0.0
    """
    expected_excess = float(np.mean((ranks.candidates - 1) / 2.0))
    if expected_excess == 0.0:
        return 0.0
    return 1.0 - (mean_rank(ranks) - 1.0) / expected_excess


def hits_at(ranks: Ranks, k: int) -> float:
    """Share of queries whose realistic rank is at most `k`.

    >>> hits_at(Ranks.from_counts(np.array([0, 0]), np.array([0, 1]), np.array([5, 5])), 1)
    0.5
    """
    return float(np.mean(ranks.realistic <= k))


def rank_metrics(ranks: Ranks) -> dict[str, float]:
    """All metrics of some ranks, by name.

    >>> sorted(rank_metrics(Ranks.from_counts(np.array([0]), np.array([0]), np.array([5]))))
    ['amri', 'hits_at_1', 'hits_at_10', 'hits_at_3', 'mean_rank', 'mrr']
    """
    return {
        "mrr": mean_reciprocal_rank(ranks),
        "mean_rank": mean_rank(ranks),
        "amri": adjusted_mean_rank_index(ranks),
        **{f"hits_at_{k}": hits_at(ranks, k) for k in HITS},
    }


def weighted_metrics(parts: Sequence[tuple[int, Mapping[str, float]]]) -> dict[str, float]:
    """The mean of metrics, each weighted by its number of triples.

    >>> weighted_metrics([(1, {"mrr": 0.0}), (3, {"mrr": 1.0})])
    {'mrr': 0.75}
    """
    total = sum(triples for triples, _ in parts)
    keys = parts[0][1] if parts else ()
    return {key: sum(triples * metrics[key] for triples, metrics in parts) / total for key in keys}
