"""True triples that a client does not hold are known to its ranking, and to nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.defences import parse
from fedkge.evaluation import evaluate
from fedkge.evaluation.popularity import Popularity
from fedkge.federation.training import Federation
from fedkge.graph import SPLITS, Graph
from fedkge.graph.shards_on_disk import load_shards, save_shards
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
    assert evaluate(counts, told, controls=False, threads=1).ranking.tail.realistic.tolist() == [2.0]
    judged = evaluate(counts, told, known=told.true_triples, controls=False, threads=1)
    assert judged.ranking.tail.realistic.tolist() == [1.0]


def test_folders_of_shards_keep_it_outside_the_clients_folders(tmp_path):
    shards = split(synthetic_graph(120, 8, 1500, seed=3), clients=2, by="entity", seed=5)
    save_shards(shards, tmp_path / "out")
    for before, after in zip(shards, load_shards(tmp_path / "out"), strict=True):
        assert len(before.elsewhere)
        np.testing.assert_array_equal(before.elsewhere, after.elsewhere)
    assert not list((tmp_path / "out" / "client-0").glob("*elsewhere*"))


def test_no_client_holds_it(tmp_path):
    """Final metrics are filtered by it, validation by a client is not."""
    shards = split(synthetic_graph(120, 8, 1500, seed=3), clients=2, by="triple", seed=5)
    options = {"rounds": 1, "dimension": 4, "negatives": 4, "seed": 1, "local_epochs": 1}
    federation = Federation(shards.graphs, parse(options))
    assert all(len(client.shard.elsewhere) == 0 for client in federation.clients.values())
    run = federation.run()
    final = run.metrics[-1]["clients"]["client-0"]["tail.realistic.mrr"]
    assert final == run.evaluate()["client-0"].metrics()["tail.realistic.mrr"]
    assert final != run.evaluate(as_a_client=True)["client-0"].metrics()["tail.realistic.mrr"]
