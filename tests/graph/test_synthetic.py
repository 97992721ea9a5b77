"""The generator: exact counts, the promised patterns, structure that can be learned, and no hidden cost."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.numbered_names import NumberedNames
from fedkge.graph.synthetic import synthetic_graph


def pairs_of(graph: Graph, kind: str) -> list[tuple[int, set[tuple[int, int]]]]:
    triples = graph.all_triples
    return [
        (number, {(head, tail) for head, _, tail in triples[triples[:, 1] == number].tolist()})
        for number, name in enumerate(graph.relations)
        if kind in name
    ]


@settings(deadline=None, max_examples=60)
@given(
    entities=st.integers(12, 120),
    relations=st.integers(1, 17),
    density=st.integers(3, 8),
    seed=st.integers(0, 10_000),
    exponent=st.sampled_from([0.0, 0.7, 1.0, 1.5]),
)
def test_counts_are_exact_and_everything_is_in_train(
    entities: int, relations: int, density: int, seed: int, exponent: float
) -> None:
    triples = (entities + 5 * relations) * density // 2
    graph = synthetic_graph(entities, relations, triples, seed, exponent=exponent)
    assert (len(graph.entities), len(graph.relations)) == (entities, relations)
    assert len(np.unique(graph.all_triples, axis=0)) == triples
    assert len(graph.valid) == len(graph.test) == round(0.05 * triples)
    assert len(np.unique(graph.train[:, [0, 2]])) == entities
    assert len(np.unique(graph.train[:, 1])) == relations
    assert (graph.all_triples[:, 0] != graph.all_triples[:, 2]).all()


def test_a_seed_decides_everything() -> None:
    one, two, other = (synthetic_graph(200, 10, 3000, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(one.split(part), two.split(part)) for part in ("train", "valid", "test"))
    assert not np.array_equal(one.train, other.train)


def test_relations_are_what_their_names_say() -> None:
    graph = synthetic_graph(600, 10, 9000, seed=1, valid_fraction=0, test_fraction=0)
    base = dict(pairs_of(graph, "many_to_many"))
    for _, pairs in pairs_of(graph, "one_to_many"):
        assert len({tail for _, tail in pairs}) == len(pairs)
        assert len({head for head, _ in pairs}) < len(pairs) / 2
    for _, pairs in pairs_of(graph, "symmetric"):
        assert pairs == {(tail, head) for head, tail in pairs}
    for number, pairs in pairs_of(graph, "inverse"):
        assert {(tail, head) for head, tail in pairs} <= base[number - 3]
    for number, pairs in pairs_of(graph, "then"):
        second = base[int(graph.relations[number].rpartition("r")[2])]
        steps: dict[int, set[int]] = {}
        for head, tail in second:
            steps.setdefault(head, set()).add(tail)
        reachable = {(head, end) for head, middle in base[number - 4] for end in steps.get(middle, ())}
        assert pairs <= reachable


def test_degrees_follow_zipf() -> None:
    graph = synthetic_graph(2000, 20, 40_000, seed=1)
    degrees = np.sort(np.bincount(graph.train[:, [0, 2]].ravel()))[::-1]
    assert degrees[0] > 8 * np.median(degrees)
    flat = synthetic_graph(2000, 20, 40_000, seed=1, exponent=0.0)
    assert np.bincount(flat.train[:, [0, 2]].ravel()).max() < degrees[0] / 2


def test_relations_join_types() -> None:
    graph = synthetic_graph(400, 40, 8000, seed=1, types=4)
    for number in range(len(graph.relations)):
        tails = graph.all_triples[graph.all_triples[:, 1] == number, 2]
        assert len(np.unique(tails)) <= 100


def mean_reciprocal_rank(scores: NDArray[np.float64], graph: Graph, triples: NDArray[np.int32]) -> float:
    """Filtered, tail side: scores is a table of test triples by entities."""
    known: dict[tuple[int, int], list[int]] = {}
    for head, relation, tail in graph.all_triples.tolist():
        known.setdefault((head, relation), []).append(tail)
    total = 0.0
    for row, (head, relation, tail) in enumerate(triples.tolist()):
        others = scores[row].copy()
        others[known[head, relation]] = -np.inf
        target = scores[row, tail]
        total += 1 / (1 + (others > target).sum() + 0.5 * (others == target).sum())
    return total / len(triples)


def trained_transe(graph: Graph, epochs: int = 40, dimension: int = 24) -> tuple[NDArray[np.float64], ...]:
    """A plain margin TransE with squared distances and plain gradient steps: enough to see structure."""
    random = np.random.default_rng(0)
    entities = random.normal(size=(len(graph.entities), dimension)) / np.sqrt(dimension)
    relations = random.normal(size=(len(graph.relations), dimension)) / np.sqrt(dimension)
    for _ in range(epochs):
        for batch in np.array_split(random.permutation(graph.train), len(graph.train) // 64):
            head, relation, tail = batch.T
            wrong = random.integers(len(entities), size=len(batch))
            good = entities[head] + relations[relation] - entities[tail]
            bad = entities[head] + relations[relation] - entities[wrong]
            active = ((good**2).sum(1) + 1 > (bad**2).sum(1))[:, None]
            step = 0.05
            np.add.at(entities, head, -step * active * (good - bad))
            np.add.at(relations, relation, -step * active * (good - bad))
            np.add.at(entities, tail, step * active * good)
            np.add.at(entities, wrong, -step * active * bad)
        entities /= np.maximum(1, np.linalg.norm(entities, axis=1, keepdims=True))
    return entities, relations


def test_there_is_something_to_learn() -> None:
    graph = synthetic_graph(500, 10, 8000, seed=1)
    heads, relations, _ = graph.test.T
    popularity = np.zeros((len(graph.relations), len(graph.entities)))
    np.add.at(popularity, (graph.train[:, 1], graph.train[:, 2]), 1)
    chance = np.log(500) / 500
    by_popularity = mean_reciprocal_rank(popularity[relations], graph, graph.test)
    entity_table, relation_table = trained_transe(graph)
    query = entity_table[heads] + relation_table[relations]
    by_transe = mean_reciprocal_rank(-((query[:, None] - entity_table[None]) ** 2).sum(-1), graph, graph.test)
    assert by_popularity > 3 * chance
    assert by_transe > 1.5 * by_popularity


def test_names_are_made_on_demand() -> None:
    names = NumberedNames("e", range(5))
    assert list(names) == ["e0", "e1", "e2", "e3", "e4"]
    assert names[1:3] == ("e1", "e2")
    assert names[-1] == "e4"
    assert names[np.int64(2)] == "e2"
    assert list(names.take([4, 0])) == ["e4", "e0"]
    assert Vocabulary(names).id_of("e3") == 3
    with pytest.raises(IndexError):
        names[5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 10), "at least 1 entity"),
        ((10, 5, 100, -1), "a seed from 0"),
        ((100, 5, 100), "expected at least 125 training triples"),
        ((4, 1, 30), "no room for 18 of the triples"),
    ],
)
def test_impossible_sizes(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        synthetic_graph(*arguments)


def test_impossible_options() -> None:
    with pytest.raises(ConfigurationError, match="expected 1 to 2 types"):
        synthetic_graph(100, 10, 1000, types=3)
    with pytest.raises(ConfigurationError, match="fractions from 0 to 1"):
        synthetic_graph(100, 10, 1000, noise=2.0)


def test_full_graphs_are_possible() -> None:
    assert len(np.unique(synthetic_graph(10, 1, 90, seed=1).all_triples, axis=0)) == 90


@pytest.mark.slow
def test_two_million_entities_and_ten_million_triples() -> None:
    start = time.process_time()
    graph = synthetic_graph(2_000_000, 100, 10_000_000, seed=1)
    assert time.process_time() - start < 120
    assert len(graph.train) + len(graph.valid) + len(graph.test) == 10_000_000
    assert np.bincount(graph.train[:, 0], minlength=2_000_000).min() >= 1
