"""Splits into shards: laws that hold for every graph, seed and number of clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph import SPLITS, Graph
from fedkge.graph.datasets import load
from fedkge.graph.numbered_names import NumberedNames
from fedkge.graph.shards import client_names
from fedkge.graph.shards_on_disk import holds_shards, load_shards, save_shards
from fedkge.graph.split import (
    DEFAULT_OVERLAP,
    RULES,
    Shards,
    from_assignment,
    read_assignment,
    split,
)
from fedkge.graph.synthetic import synthetic_graph
from tests.real_data import data_folder

graphs = st.builds(
    synthetic_graph,
    entities=st.integers(30, 80),
    relations=st.integers(5, 12),
    triples=st.integers(300, 700),
    seed=st.integers(0, 1000),
)
rules = st.sampled_from(sorted(RULES))
seeds = st.integers(0, 2**32)


def named(graph: Graph, part: str) -> list[tuple[str, str, str]]:
    rows = graph.split(part).tolist()
    return [(graph.entities[head], graph.relations[relation], graph.entities[tail]) for head, relation, tail in rows]


def assert_same(one: Shards, two: Shards) -> None:
    assert one.summary == two.summary
    for left, right in zip(one, two, strict=True):
        assert tuple(left.entities) == tuple(right.entities)
        assert tuple(left.relations) == tuple(right.relations)
        assert all(np.array_equal(left.split(part), right.split(part)) for part in SPLITS)


@settings(deadline=None, max_examples=40)
@given(graph=graphs, clients=st.integers(2, 5), by=rules, seed=seeds)
def test_laws(graph: Graph, clients: int, by: str, seed: int) -> None:
    shards = split(graph, clients, by, seed)
    assert [shard.name for shard in shards] == [f"client-{number}" for number in range(clients)]
    for position, part in enumerate(SPLITS):
        source = named(graph, part)
        dealt = [triple for shard in shards for triple in named(shard, part)]
        assert len(dealt) == len(set(dealt)), "a triple is in two shards"
        assert set(dealt) <= set(source), "a local id maps to another name"
        left_out = shards.summary.outside[position] + shards.summary.unseen[position]
        assert len(dealt) + left_out == len(source)
    for shard in shards:
        assert np.array_equal(np.unique(shard.train[:, [0, 2]]), np.arange(len(shard.entities)))
        assert np.array_equal(np.unique(shard.train[:, 1]), np.arange(len(shard.relations)))
    assert shards.summary.unseen[0] == 0


@settings(deadline=None, max_examples=20)
@given(graph=graphs, clients=st.integers(2, 4), seed=seeds)
def test_by_entity_keeps_exactly_the_triples_with_both_ends_at_one_client(
    graph: Graph, clients: int, seed: int
) -> None:
    try:
        shards = split(graph, clients, "entity", seed, overlap=0.0)
    except ConfigurationError:
        reject()  # seven entities need not have a triple among them
    home = {name: number for number, shard in enumerate(shards) for name in shard.entities}
    assert sum(len(shard.entities) for shard in shards) == len(home), "overlap 0 is a partition"
    for head, relation, tail in named(graph, "train"):
        if head in home and tail in home and home[head] == home[tail]:
            assert (head, relation, tail) in named(shards[home[head]], "train")


def test_overlap_is_what_was_asked() -> None:
    graph = synthetic_graph(600, 5, 60_000, seed=2, valid_fraction=0, test_fraction=0)
    for overlap in (0.0, 0.25, 0.5, 1.0):
        shards = split(graph, 3, "entity", seed=5, overlap=overlap)
        # Dense enough that an owned entity has a triple: 200 at home, and the share of the 400 that live elsewhere.
        assert [client.entities for client in shards.summary.clients] == [200 + round(overlap * 200) * 2] * 3
        shared = shards.summary.shared_entities[0][1]
        assert shared == pytest.approx(400 * overlap + 200 * overlap**2, abs=25)
    assert split(graph, 3, seed=5).summary == split(graph, 3, "entity", 5, DEFAULT_OVERLAP).summary


def test_full_overlap_deals_every_triple_evenly() -> None:
    graph = synthetic_graph(200, 1, 30_000, seed=2, valid_fraction=0, test_fraction=0)
    shards = split(graph, 3, "entity", seed=1, overlap=1.0)
    assert shards.summary.outside == (0, 0, 0)
    assert all(abs(len(shard.train) - 10_000) < 500 for shard in shards)


@settings(deadline=None, max_examples=20)
@given(graph=graphs, clients=st.integers(2, 5), seed=seeds)
def test_by_relation_covers_everything_and_shares_no_relation(graph: Graph, clients: int, seed: int) -> None:
    shards = split(graph, clients, "relation", seed)
    assert shards.summary.outside == (0, 0, 0)
    owned = [name for shard in shards for name in shard.relations]
    assert sorted(owned) == sorted(graph.relations)
    counts = [len(shard.relations) for shard in shards]
    assert max(counts) - min(counts) <= 1


def test_by_triple_deals_equally_many() -> None:
    shards = split(synthetic_graph(100, 5, 1003, seed=1, valid_fraction=0, test_fraction=0), 4, "triple", seed=3)
    assert sorted(len(shard.train) for shard in shards) == [250, 251, 251, 251]


@pytest.mark.parametrize("by", sorted(RULES))
def test_one_client_gets_the_graph_itself(by: str) -> None:
    graph = synthetic_graph(50, 5, 300, seed=1)
    shards = split(graph, 1, by, seed=9)
    assert shards[0] is graph
    assert len(shards) == 1
    assert shards.summary.shared_entities == ((50,),)


@pytest.mark.parametrize("by", sorted(RULES))
def test_a_seed_decides_everything(by: str) -> None:
    graph = synthetic_graph(80, 10, 900, seed=1)
    assert_same(split(graph, 3, by, seed=4), split(graph, 3, by, seed=4))
    assert split(graph, 3, by, seed=4)[0].train.tolist() != split(graph, 3, by, seed=5)[0].train.tolist()


def test_the_same_under_another_hash_seed() -> None:
    program = (
        "from fedkge.graph.split import split; from fedkge.graph.synthetic import synthetic_graph; import hashlib; "
        "s = split(synthetic_graph(80, 10, 900, seed=1), 3, seed=4); "
        "told = repr([(list(g.entities), g.train.tolist(), g.test.tolist()) for g in s]); "
        "print(hashlib.sha256(told.encode()).hexdigest())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_lazy_names_stay_lazy() -> None:
    shard = split(synthetic_graph(80, 10, 900, seed=1), 3, seed=4)[1]
    assert isinstance(shard.entities.names, NumberedNames)
    assert shard.entities.id_of(shard.entities[7]) == 7


def test_the_notice_goes_with_the_shards() -> None:
    graph = Graph.from_names("tiny", [("a", "r", "b"), ("b", "r", "a")], notice="Thanks to X")
    assert {shard.notice for shard in split(graph, 2, "triple")} == {"Thanks to X"}


@pytest.mark.parametrize(
    ("by", "clients", "message"),
    [
        ("relation", 2, "expected at most as many clients as relations in train, got 2 for 1: ask for fewer"),
        ("entity", 5, "expected at most as many clients as entities, got 5 for 4"),
        ("triple", 4, "expected at most as many clients as training triples, got 4 for 3"),
        ("entity", 4, "client-0 would have no training triples of tiny: ask for fewer clients or more overlap"),
    ],
)
def test_too_many_clients(by: str, clients: int, message: str) -> None:
    graph = Graph.from_names("tiny", [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d")])
    with pytest.raises(ConfigurationError, match=message):
        split(graph, clients, by, overlap=0.0 if by == "entity" else None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clients": 0}, "at least 1 client"),
        ({"clients": 2, "seed": -1}, "a seed from 0"),
        ({"clients": 2, "by": "entitty"}, "did you mean entity"),
        ({"clients": 2, "overlap": 1.5}, "overlap from 0 to 1"),
        ({"clients": 2, "by": "triple", "overlap": 0.5}, "overlap from 0 to 1 with a split by entity"),
    ],
)
def test_impossible_options(arguments: dict[str, object], message: str) -> None:
    graph = Graph.from_names("tiny", [("a", "r", "b"), ("b", "r", "c")])
    with pytest.raises(ConfigurationError, match=message):
        split(graph, **arguments)  # type: ignore[arg-type]


def test_the_summary_counts_and_prints() -> None:
    graph = synthetic_graph(80, 10, 900, seed=1)
    summary = split(graph, 2, seed=4).summary
    rows = summary.rows()
    assert rows[0][:6] == ("client", "train", "valid", "test", "entities", "relations")
    assert [row[0] for row in rows[1:]] == ["client-0", "client-1", "outside all shards", "unseen in train"]
    assert {len(row) for row in rows} == {8}
    assert summary.shared_entities[0][1] == summary.shared_entities[1][0]
    assert "shared with client-1" in summary.text()


def test_an_assignment_from_elsewhere() -> None:
    graph = Graph.from_names(
        "tiny", [("a", "r", "b"), ("b", "s", "c")], valid=[("a", "r", "c")], test=[("c", "s", "b")]
    )
    shards = from_assignment(graph, np.array([0, 1, 0, 1]))
    assert named(shards[0], "train") == [("a", "r", "b")]
    assert named(shards[1], "test") == [("c", "s", "b")]
    assert shards.summary.unseen == (0, 1, 0)
    kept = from_assignment(graph, np.array([0, 1, 0, 1]), keep_unseen=True)
    assert named(kept[0], "valid") == [("a", "r", "c")]
    again = from_assignment(graph, np.array([0, 1, 0, -1]), np.array([0, 0, 0, 0]))
    assert len(again[0].train) == 2
    assert again.summary.outside == (1, 0, 0)
    with pytest.raises(DataError, match="a client and a split for each of the 4 triples"):
        from_assignment(graph, np.array([0, 1]))
    with pytest.raises(DataError, match="splits 0, 1 or 2"):
        from_assignment(graph, np.array([0, 1, 0, 1]), np.array([0, 1, 2, 3]))


def test_a_malformed_assignment_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("0\t1\n0\n")
    with pytest.raises(DataError, match=r"bad\.txt:2: expected client<TAB>split"):
        read_assignment(tmp_path / "bad.txt")


@pytest.mark.parametrize("by", sorted(RULES))
def test_saving_and_loading_keeps_names_ids_and_order(by: str, tmp_path: Path) -> None:
    shards = split(synthetic_graph(80, 10, 900, seed=1), 3, by, seed=4)
    save_shards(shards, tmp_path / "shards")
    loaded = load_shards(tmp_path / "shards")
    for one, two in zip(shards, loaded, strict=True):
        assert tuple(one.entities) == tuple(two.entities)
        assert all(np.array_equal(one.split(part), two.split(part)) for part in SPLITS)
    assert loaded.summary.clients == shards.summary.clients
    assert loaded.summary.shared_entities == shards.summary.shared_entities
    with pytest.raises(DataError, match="expected a new or empty folder"):
        save_shards(shards, tmp_path / "shards")


def test_many_clients_have_the_same_names_everywhere_and_keep_their_order(tmp_path: Path) -> None:
    shards = split(synthetic_graph(60, 5, 600, seed=1), 11, "triple", seed=2)
    assert [shard.name for shard in shards] == client_names(11) == sorted(client_names(11))
    save_shards(shards, tmp_path / "new")
    assert [shard.name for shard in load_shards(tmp_path / "new")] == client_names(11)
    for number, name in enumerate(client_names(11)):
        (tmp_path / "new" / name).rename(tmp_path / "new" / f"client-{number}")
    again = load_shards(tmp_path / "new")
    assert [shard.name for shard in again] == client_names(11)
    assert all(np.array_equal(one.train, two.train) for one, two in zip(shards, again, strict=True))
    assert holds_shards(tmp_path / "new")
    (tmp_path / "new" / "client-3").rename(tmp_path / "new" / "client-13")
    with pytest.raises(DataError, match="expected folders client-0"):
        load_shards(tmp_path / "new")


def test_saving_keeps_the_notice_and_refuses_tabs(tmp_path: Path) -> None:
    save_shards(split(Graph.from_names("g", [("ä", "r", "b")], notice="Thanks to X"), 1), tmp_path / "one")
    assert load_shards(tmp_path / "one")[0].notice == "Thanks to X"
    with pytest.raises(DataError, match="without tabs"):
        save_shards(split(Graph.from_names("g", [("a\tb", "r", "c")]), 1), tmp_path / "two")
    assert not (tmp_path / "two").exists()
    with pytest.raises(DataError, match="expected folders client-0"):
        load_shards(tmp_path)


def test_fb15k_237_for_three_clients_is_near_the_known_size() -> None:
    graph = load(data_folder("fb15k-237"))
    for client in split(graph, 3, "entity", seed=7).summary.clients:
        assert client.entities == pytest.approx(7046, rel=0.03)
        assert client.train + client.valid + client.test == pytest.approx(64_452, rel=0.15)


@pytest.mark.parametrize("published", ["R3", "C5"])
def test_published_splits_have_their_published_counts(published: str) -> None:
    folder = data_folder("fb15k-237-fedlu")
    clients, splits = read_assignment(folder / f"{published}.assign.txt.xz")
    shards = from_assignment(load(data_folder("fb15k-237")), clients, splits, keep_unseen=True)
    expected = json.loads((folder / "meta.json").read_text())["files"][f"{published}.assign.txt.xz"]["per_client"]
    for client, counts in zip(shards.summary.clients, expected, strict=True):
        assert {key: getattr(client, key) for key in counts} == counts
