import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.evaluation import Ranks, rank_metrics
from fedkge.evaluation.ranks import adjusted_mean_rank_index, hits_at, mean_rank, mean_reciprocal_rank


def ranks_of(greater: list[int], equal: list[int], candidates: list[int]) -> Ranks:
    return Ranks.from_counts(*(np.array(values, dtype=np.int64) for values in (greater, equal, candidates)))


def test_a_tie_lies_between_its_ends() -> None:
    ranks = ranks_of([0, 4], [2, 1], [9, 9])
    assert ranks.optimistic.tolist() == [1, 5]
    assert ranks.pessimistic.tolist() == [3, 6]
    assert ranks.realistic.tolist() == [2.0, 5.5]


def test_metrics_by_hand() -> None:
    metrics = rank_metrics(ranks_of([0, 2, 9, 10], [0, 1, 0, 0], [11, 11, 21, 21]))
    assert metrics["mrr"] == pytest.approx((1 + 1 / 3.5 + 1 / 10 + 1 / 11) / 4)
    assert metrics["mean_rank"] == pytest.approx((1 + 3.5 + 10 + 11) / 4)
    assert metrics["amri"] == pytest.approx(1 - (25.5 / 4 - 1) / ((6 + 6 + 11 + 11) / 4 - 1))
    assert [metrics[f"hits_at_{k}"] for k in (1, 3, 10)] == [0.25, 0.25, 0.75]


def test_a_half_rank_is_no_hit_below_it() -> None:
    tied_first = ranks_of([0], [1], [5])
    assert hits_at(tied_first, 1) == 0.0
    assert hits_at(tied_first, 2) == 1.0


@given(st.integers(2, 1000))
def test_constant_scores_are_worth_chance(candidates: int) -> None:
    ranks = ranks_of([0], [candidates - 1], [candidates])
    assert adjusted_mean_rank_index(ranks) == pytest.approx(0.0)
    assert mean_rank(ranks) == (candidates + 1) / 2


def test_a_single_candidate_teaches_nothing() -> None:
    assert adjusted_mean_rank_index(ranks_of([0], [0], [1])) == 0.0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=20))
def test_metrics_are_finite_and_in_range(counts: list[tuple[int, int]]) -> None:
    greater, equal = [first for first, _ in counts], [second for _, second in counts]
    ranks = ranks_of(greater, equal, [first + second + 1 for first, second in counts])
    metrics = rank_metrics(ranks)
    assert all(math.isfinite(value) for value in metrics.values())
    assert 0 < metrics["mrr"] <= 1
    assert -1.0 - 1e-9 <= metrics["amri"] <= 1
    assert metrics["hits_at_1"] <= metrics["hits_at_3"] <= metrics["hits_at_10"]


def test_concatenate_keeps_the_order() -> None:
    one, two = ranks_of([0], [0], [3]), ranks_of([5, 6], [1, 0], [9, 8])
    both = Ranks.concatenate((one, two))
    assert len(both) == 3
    assert both.realistic.tolist() == [1.0, 6.5, 7.0]
    assert both.candidates.tolist() == [3, 9, 8]
    assert mean_reciprocal_rank(one) == 1.0
