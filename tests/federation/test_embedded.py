"""A client that is late on the embedded engine, and rows that too few clients own."""

import numpy as np
import pytest

from fedkge.base.errors import RunError
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import Greeting, Hello
from fedkge.federation.server import Server, ServerPlan
from fedkge.federation.union import evidence, unite
from fedkge.graph import Graph
from fedkge.graph.split import split
from fedkge.models.scorer import ModelShape
from tests.cases.engines import Waits
from tests.short_runs import make_clients, short


def test_a_late_client_hears_the_next_request_only_when_it_is_done() -> None:
    slow = Waits()
    engine = EmbeddedEngine({"slow": slow}, threads=2)
    for _ in range(3):
        engine.exchange({"slow": Hello()}, timeout_seconds=0.05)
    slow.go.set()
    engine.exchange({"slow": Hello()})
    assert slow.most == 1


def greeting(*names: str, tags: bool = False) -> Greeting:
    words = {"entities": np.arange(len(names), dtype=np.uint8)[:, None]} if tags else {}
    return Greeting({"entities": names}, {"entities": 4}, 1, words)  # type: ignore[arg-type]


def test_rows_with_too_few_owners_are_nobodys() -> None:
    union = unite({"a": greeting("x", "y", "z"), "b": greeting("z", "w"), "c": greeting("w", "x")}, "entities", 2)
    assert dict(union.names) == {"x": 0, "z": 1, "w": 2}
    assert {name: rows.tolist() for name, rows in union.places.items()} == {"a": [0, 2], "b": [0, 1], "c": [0, 1]}
    assert {name: rows.tolist() for name, rows in union.owners.items()} == {"a": [0, 1], "b": [1, 2], "c": [2, 0]}


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(RunError, match="have 2 owners"):
        unite({"a": greeting("x"), "b": greeting("y")}, "entities", 2)


def test_each_client_is_shown_the_words_of_the_others_about_its_own_rows() -> None:
    words = evidence({"a": greeting("x", "y", tags=True), "b": greeting("w", "y", tags=True)}, "a")
    assert {name: word.places.tolist() for name, word in words.items()} == {"b": [1]}
    assert words["b"].tags.tolist() == [[1]]


def test_rows_that_stay_at_home_are_neither_sent_nor_averaged(graph: Graph) -> None:
    clients = make_clients(split(graph, clients=3, by="entity", seed=3, overlap=0.1).graphs, short())
    server = Server(EmbeddedEngine(clients, threads=1), ServerPlan(ModelShape(8, 10.0, 1), 7, minimum_owners=2))
    report = server.run_round()
    shared = {name: len(rows) for name, rows in server.owners["entities"].items()}
    assert {name: len(upload.rows["entities"]) for name, upload in report.uploads.items()} == shared
    assert sum(shared.values()) < sum(len(client.shard.entities) for client in clients.values())
