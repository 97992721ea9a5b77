"""What every engine must do: carry requests and replies, name who failed, and change no bit of the training."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fedkge.base.errors import NumericalError, RunError
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import ClientLogic, Engine, Failure, Hello, Reply, Request, Sharing
from fedkge.federation.server import Server, ServerPlan
from fedkge.graph.split import Shards
from fedkge.runs.run import shape_of
from tests.cases import Case
from tests.short_runs import make_clients, short


class Answers:
    """Counts its requests and answers with the count."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def handle(self, request: Request) -> Reply:
        self.requests.append(request)
        return Sharing({"entities": len(self.requests)})


class Waits(Answers):
    """Answers once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.inside, self.most = 0, 0

    def handle(self, request: Request) -> Reply:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.go.wait(60)
        self.inside -= 1
        return super().handle(request)


class Fails(Answers):
    """Has an error of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def handle(self, request: Request) -> Reply:  # noqa: ARG002
        raise self.error


class EngineCase(Case):
    """An engine; its `name` is that of its class. A subclass makes one for some clients in this process."""

    def engine(self, clients: Mapping[str, ClientLogic], folder: Path) -> Engine:
        raise NotImplementedError

    def test_clients_are_sorted(self, tmp_path: Path) -> None:
        engine = self.engine({name: Answers() for name in ("b", "c", "a")}, tmp_path)
        assert list(engine.clients()) == ["a", "b", "c"]

    def test_everybody_who_is_asked_answers_and_nobody_else(self, tmp_path: Path) -> None:
        clients = {name: Answers() for name in ("a", "b", "c")}
        engine = self.engine(clients, tmp_path)
        assert dict(engine.exchange({"a": Hello(), "c": Hello()}, timeout_seconds=60)) == {
            "a": Sharing({"entities": 1}),
            "c": Sharing({"entities": 1}),
        }
        assert dict(engine.exchange({"a": Hello()}, timeout_seconds=60)) == {"a": Sharing({"entities": 2})}
        assert [len(client.requests) for client in clients.values()] == [2, 0, 1]
        assert isinstance(clients["a"].requests[0], Hello)

    def test_nobody_to_ask_is_no_error(self, tmp_path: Path) -> None:
        assert dict(self.engine({"a": Answers()}, tmp_path).exchange({}, timeout_seconds=60)) == {}

    def test_who_is_late_is_a_failure_and_the_others_are_not(self, tmp_path: Path) -> None:
        slow = Waits()
        engine = self.engine({"slow": slow, "quick": Answers()}, tmp_path)
        replies = engine.exchange({"slow": Hello(), "quick": Hello()}, timeout_seconds=0.3)
        assert dict(replies) == {
            "quick": Sharing({"entities": 1}),
            "slow": Failure("slow", "no answer within 0.3 seconds"),
        }
        slow.go.set()
        assert isinstance(engine.exchange({"slow": Hello()}, timeout_seconds=60)["slow"], Sharing)

    def test_an_error_of_a_client_is_its_failure(self, tmp_path: Path) -> None:
        clients = {
            "bad": Fails(RunError("no such file")),
            "nan": Fails(NumericalError("not finite")),
            "good": Answers(),
        }
        engine = self.engine(clients, tmp_path)
        replies = engine.exchange({name: Hello() for name in clients}, timeout_seconds=60)
        assert replies["good"] == Sharing({"entities": 1})
        bad, nan = replies["bad"], replies["nan"]
        assert isinstance(bad, Failure)
        assert isinstance(nan, Failure)
        assert (bad.client, nan.client) == ("bad", "nan")
        assert not bad.diverged
        assert nan.diverged

    @pytest.mark.parametrize("strategy", ["fede", "fedr"])
    def test_training_over_it_has_the_bits_of_training_without_it(
        self, shards: Shards, tmp_path: Path, strategy: str
    ) -> None:
        """Three rounds; a twin asks the clients one after another in this thread."""
        tables = []
        for make in (self.engine, lambda clients, _folder: EmbeddedEngine(clients, threads=1)):
            configuration: Any = short(strategy=strategy)
            clients = make_clients(shards.graphs, configuration)
            server = Server(make(clients, tmp_path), ServerPlan(shape_of(configuration), seed=5))
            for _ in range(3):
                assert set(server.run_round().uploads) == set(clients)
            tables.append({name: table.tobytes() for name, table in server.tables.items()})
        assert tables[0] == tables[1]
        assert tables[0]
