"""Small graphs and short runs that every test of the federation can afford."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedkge.api.training import start
from fedkge.configuration import Configuration
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import Failure, Fit, Reply, Request, Upload
from fedkge.federation.server import RoundReport, Server
from fedkge.graph import Graph
from fedkge.graph.split import Shards, split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.runs.strategies import make_strategy

SHORT: dict[str, Any] = {
    "rounds": 3,
    "dimension": 8,
    "negatives": 8,
    "negative_group": 8,
    "batch_size": 32,
    "local_epochs": 1,
    "evaluate_every": 1,
    "learning_rate": 0.01,
    "seed": 5,
    "threads": 1,
}


def short(**options: Any) -> Configuration:
    return Configuration.of(**{**SHORT, **options})


def break_off(configuration: Configuration, shards: Shards, folder: Path, rounds: int) -> None:
    """Start a run there that ends, as by a power cut, after so many rounds."""

    class InterruptionError(Exception):
        pass

    run_round = Server.run_round

    def stop(server: Server) -> RoundReport:
        if server.round == rounds:
            raise InterruptionError
        return run_round(server)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Server, "run_round", stop)
        with pytest.raises(InterruptionError):
            start(configuration, shards.graphs, folder)


def ledger_records(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's ledger without what is random: identity, numbers and checksums."""
    lines = (run / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    random = ("run", "nonce", "checksum")
    return [{key: value for key, value in json.loads(line).items() if key not in random} for line in lines]


@pytest.fixture(scope="session")
def graph() -> Graph:
    return synthetic_graph(entities=60, relations=4, triples=500, seed=1)


@pytest.fixture(scope="session")
def shards(graph: Graph) -> Shards:
    return split(graph, clients=3, by="entity", seed=3, overlap=0.5)


def make_clients(
    shards: Sequence[Graph], configuration: Configuration, numbers: Sequence[int] | None = None
) -> dict[str, Client]:
    shared = make_strategy(configuration.federation.strategy).shared
    return {
        f"client-{i}": Client(
            f"client-{i}",
            shard,
            ClientPlan(configuration, configuration.experiment.seed or 0, numbers[i] if numbers else i, shared),
        )
        for i, shard in enumerate(shards)
    }


class Mischief:
    """A real engine with real clients, between which and the server replies can be spoiled.

    `spoil[round, client]` turns an honest upload into something else; None loses it on the way.
    """

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self._engine = EmbeddedEngine(clients, threads=1)
        self.spoil: dict[tuple[int, str], Callable[[Upload], Any]] = {}

    def clients(self) -> Sequence[str]:
        return self._engine.clients()

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = math.inf
    ) -> Mapping[str, Reply | Failure]:
        replies: dict[str, Any] = dict(self._engine.exchange(requests, timeout_seconds=timeout_seconds))
        for name, request in requests.items():
            change = self.spoil.get((request.round, name)) if isinstance(request, Fit) else None
            if change is not None:
                replies[name] = change(replies[name])
        return {name: reply for name, reply in replies.items() if reply is not None}


def with_rows(upload: Upload, **rows: Any) -> Upload:
    return replace(upload, rows={**upload.rows, **rows})
