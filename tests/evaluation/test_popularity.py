from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError
from fedkge.evaluation import Popularity, rank
from fedkge.graph import Graph, Side, Triples
from fedkge.graph.datasets import load
from tests.evaluation.scorers import brute_force
from tests.real_data import data_folder


def random_triples(seed: int, count: int) -> Triples:
    return np.random.default_rng(seed).integers(0, [9, 3, 9], size=(count, 3)).astype(np.int32)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_counts_equal_a_counter(seed: int, count: int) -> None:
    train = random_triples(seed, count)
    popularity = Popularity.count(train, entities=9)
    tails = Counter((relation, tail) for _, relation, tail in train.tolist())
    heads = Counter((relation, head) for head, relation, _ in train.tolist())
    for relation in range(3):
        assert popularity.row(relation, "tail").tolist() == [tails[relation, entity] for entity in range(9)]
        assert popularity.row(relation, "head").tolist() == [heads[relation, entity] for entity in range(9)]


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_ranks_equal_brute_force(epsilon: float | None) -> None:
    train, test = random_triples(1, 50), random_triples(2, 20)
    known = np.concatenate([train, test])
    popularity = Popularity.count(train, entities=9, epsilon=epsilon, generator=np.random.default_rng(3))
    tables = {
        "tail": np.stack([np.stack([popularity.row(relation, "tail") for relation in range(3)])] * 9),
        "head": np.stack([np.stack([popularity.row(relation, "head") for relation in range(3)])] * 9).transpose(
            2, 1, 0
        ),
    }
    ranking = rank(popularity, test, known, threads=2, block_bytes=1)
    for side, ranks in (("tail", ranking.tail), ("head", ranking.head)):
        columns = (ranks.optimistic.tolist(), ranks.pessimistic.tolist(), ranks.candidates.tolist())
        expected = brute_force(tables[side], test, known, "tail" if side == "tail" else "head")
        assert list(zip(*columns, strict=True)) == expected


def test_noise_is_laplace_of_scale_two_over_epsilon_on_every_cell() -> None:
    """20,000 cells, none with a count: a mean of |x| off by 5 % lies 7 standard errors away (false alarm < 1e-10)."""
    empty = np.empty((0, 3), dtype=np.int32)
    popularity = Popularity.count(empty, entities=20_000, epsilon=0.5, generator=np.random.default_rng(11))
    sides: tuple[Side, Side] = ("tail", "head")
    for side in sides:
        noise = popularity.row(0, side)
        assert np.abs(noise).mean() == pytest.approx(2 / 0.5, rel=0.05)
        assert np.median(noise) == pytest.approx(0.0, abs=0.2)
        assert np.count_nonzero(noise) == len(noise)


def test_noise_is_fixed_by_the_generator_and_differs_between_cells() -> None:
    train = random_triples(1, 50)
    one, two, other = (
        Popularity.count(train, 9, epsilon=1.0, generator=np.random.default_rng(seed)) for seed in (7, 7, 8)
    )
    exact = Popularity.count(train, 9)
    first = one.row(1, "tail").copy()
    one.row(2, "head")
    np.testing.assert_array_equal(first, one.row(1, "tail"))
    np.testing.assert_array_equal(first, two.row(1, "tail"))
    rows = [first - exact.row(1, "tail"), one.row(2, "tail") - exact.row(2, "tail")]
    rows += [one.row(1, "head") - exact.row(1, "head"), other.row(1, "tail") - exact.row(1, "tail")]
    assert not any(np.allclose(rows[i], rows[j]) for i in range(4) for j in range(i))


def test_noise_needs_a_budget_and_a_generator() -> None:
    train = random_triples(1, 5)
    for epsilon in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigurationError, match="epsilon"):
            Popularity.count(train, 9, epsilon=epsilon, generator=np.random.default_rng(0))
    with pytest.raises(ConfigurationError, match="generator"):
        Popularity.count(train, 9, epsilon=1.0)


def mrr(graph: Graph, epsilon: float | None) -> dict[str, float]:
    popularity = Popularity.count(graph.train, len(graph.entities), epsilon=epsilon, generator=np.random.default_rng(0))
    metrics = rank(popularity, graph.test, graph.all_triples).metrics()
    return {side: metrics[f"{side}.realistic.mrr"] for side in ("tail", "head", "both")}


@pytest.fixture(scope="module")
def fb15k237() -> Graph:
    return load(data_folder("fb15k-237"))


def test_fb15k_237(fb15k237: Graph) -> None:
    exact = mrr(fb15k237, None)
    assert exact == pytest.approx({"tail": 0.3305, "head": 0.1363, "both": 0.2334}, abs=5e-4)
    noisy = mrr(fb15k237, 1.0)
    assert noisy == pytest.approx({"tail": 0.3135, "head": 0.1145, "both": 0.2140}, abs=3e-3)


def test_nell_995() -> None:
    graph = load(data_folder("nell-995"))
    exact, noisy = mrr(graph, None), mrr(graph, 1.0)
    assert exact["tail"] == pytest.approx(0.40, abs=0.01)
    assert exact["tail"] == pytest.approx(0.4075, abs=5e-4)
    assert exact["head"] < 0.0005
    assert noisy["tail"] == pytest.approx(0.3882, abs=5e-3)
