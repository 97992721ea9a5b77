"""Each engine by the name of its class; the tests are in `EngineCase`."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedkge.base.errors import FedkgeError, NumericalError
from fedkge.deploy.coordinator import Members
from fedkge.deploy.keys import Key
from fedkge.deploy.ledger_ends import LedgerEnds
from fedkge.deploy.nvflare_engine import Heard, NVFlareEngine
from fedkge.deploy.signatures import Address, Opened, Signer, Verifier, public_key
from fedkge.deploy.wire import as_request, decode, encode
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import ClientLogic, Engine, Failure
from tests.cases.engines import EngineCase


class TestEmbeddedEngine(EngineCase):
    name = "EmbeddedEngine"

    def engine(self, clients: Mapping[str, ClientLogic], folder: Path) -> Engine:  # noqa: ARG002
        return EmbeddedEngine(clients, threads=2)


class TestMembers(EngineCase):
    name = "Members"

    def engine(self, clients: Mapping[str, ClientLogic], folder: Path) -> Engine:
        every = EmbeddedEngine({**clients, "stranger": clients["a"]} if "a" in clients else clients, threads=2)
        return Members(every, frozenset(clients), LedgerEnds(folder), lambda _line: None)


class TestNVFlareEngine(EngineCase):
    name = "NVFlareEngine"

    def engine(self, clients: Mapping[str, ClientLogic], folder: Path) -> Engine:  # noqa: ARG002
        return Carrier(clients).engine


class Carrier:
    """Carries signed bytes between the engine and clients in this process; each client works in a thread of its own."""

    def __init__(self, clients: Mapping[str, ClientLogic]) -> None:
        self.clients, self.known = clients, {0}
        self.turns = {name: threading.Lock() for name in clients}
        self.key = Key.fresh()
        self.engine = NVFlareEngine(self, Signer(self.key, "study", "job", itertools.count(1).__next__))

    def names(self) -> Sequence[str]:
        return list(self.clients)

    def deliver(self, site: str, seal: bytes, content: bytes, timeout_seconds: float) -> bool:  # noqa: ARG002
        opened = Verifier(public_key(self.key), Address("study", site, "job")).open(seal, content)
        assert isinstance(opened, Opened)
        self.known.add(opened.number)
        threading.Thread(target=self.answer, args=(site, opened.token, content), daemon=True).start()
        return True

    def answer(self, site: str, token: str, content: bytes) -> None:
        with self.turns[site]:
            try:
                reply = encode(self.clients[site].handle(as_request(decode(content))))
            except FedkgeError as error:
                reply = encode(Failure(site, str(error), isinstance(error, NumericalError)))
        self.engine.receive(token, reply)

    def ping(self, site: str, number: int) -> Heard:  # noqa: ARG002
        return "known" if number in self.known else "unknown"

    def lose(self, site: str) -> None:
        raise AssertionError(f"{site} is alive")

    def stopped(self) -> bool:
        return False
