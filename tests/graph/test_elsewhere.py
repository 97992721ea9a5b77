"""True triples that a client does not hold are known to its ranking, and to nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.evaluation import evaluate
from fedkge.evaluation.popularity import Popularity
from fedkge.graph import SPLITS, Graph
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph


def named(graph: Graph, triples: np.ndarray) -> set[tuple[str, str, str]]:
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in triples.tolist()}


@pytest.mark.parametrize("by", ["entity", "relation", "triple"])
def test_a_shard_knows_every_true_triple_among_its_names(by):
    graph = synthetic_graph(120, 8, 1500, seed=3)
    everything = named(graph, graph.all_triples)
    for shard in split(graph, clients=3, by=by, seed=5):
        own = named(shard, shard.all_triples)
        among_names = {
            (h, r, t) for h, r, t in everything if h in shard.entities and r in shard.relations and t in shard.entities
        }
        assert named(shard, shard.elsewhere) == among_names - own
        assert named(shard, shard.true_triples) == among_names
        for name in SPLITS:
            assert not named(shard, shard.split(name)) & named(shard, shard.elsewhere)


def test_ranking_does_not_punish_what_another_client_taught():
    """Counts put b above c for (a, likes, ?); that (a, likes, b) is true elsewhere takes it out of c's way."""
    train = [("x", "likes", "b"), ("y", "likes", "b"), ("a", "knows", "c"), ("z", "likes", "c")]
    alone = Graph.from_names("alone", train=train, test=[("a", "likes", "c")])
    ids = alone.entities.id_of, alone.relations.id_of
    elsewhere = np.array([[ids[0]("a"), ids[1]("likes"), ids[0]("b")]], dtype=np.int32)
    told = Graph("told", alone.entities, alone.relations, alone.train, test=alone.test, elsewhere=elsewhere)
    counts = Popularity.count(alone.train, len(alone.entities))
    assert evaluate(counts, alone, controls=False, threads=1).ranking.tail.realistic.tolist() == [2.0]
    assert evaluate(counts, told, controls=False, threads=1).ranking.tail.realistic.tolist() == [1.0]
