"""A site: its own graph, its own budget, and the answers that leave its machine."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from fedkge import __version__
from fedkge.accounting.ledger import Ledger
from fedkge.configuration import Configuration, parse
from fedkge.deploy.site_file import SiteFile
from fedkge.deploy.status import Status
from fedkge.deploy.wire import LARGEST_MESSAGE, Numbers, WireError, as_request, decode, encode
from fedkge.errors import FedkgeError, NumericalError, PrivacyError, RunError
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.defence import check_defence, defence_of
from fedkge.federation.messages import (
    Accept,
    Failure,
    Finish,
    Fit,
    Goodbye,
    Invite,
    Kept,
    Reply,
    Request,
)
from fedkge.federation.randomness import fresh_seed
from fedkge.federation.run import RunDirectory, provenance_of
from fedkge.graph import Graph
from fedkge.graph.datasets import load

LOG = logging.getLogger("fedkge.site")
LOCK_SECONDS = 120.0


class Member:
    """Answers a server's requests, as far as site.toml allows. Use it with `with`: it keeps its run directory locked.

    It begins with an invitation, whose terms it judges; before that it answers nothing.
    """

    def __init__(self, settings: SiteFile, name: str) -> None:
        self.name = name
        self._settings = settings
        self._directory = RunDirectory(settings.run)
        self._status = Status(settings.run)
        self._stack = ExitStack()
        self._client: Client | None = None
        self._configuration: Configuration | None = None
        self._terms: dict[str, Any] = {}
        self._numbers: Numbers = "float32"
        self._graph: Graph | None = None
        self._ledger: Ledger | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def answer(self, content: bytes) -> bytes:
        """The bytes of the answer to the bytes of a request; whatever goes wrong is an answer too."""
        try:
            reply: Reply | Failure = self.handle(as_request(decode(content, LARGEST_MESSAGE)))
        except FedkgeError as error:
            LOG.error("%s", error)
            self._status.note(f"refused: {error}")
            reply = Failure(self.name, _outward(error), isinstance(error, NumericalError))
        return encode(reply, self._numbers)

    def handle(self, request: Request) -> Reply:
        """Answer one request of the server."""
        if isinstance(request, Invite):
            return self._join(request)
        if self._client is None:
            raise RunError(f"{self.name} was asked for {type(request).__name__} before it was invited")
        if isinstance(request, Finish):
            return self._finish(request, self._client)
        if isinstance(request, Fit):
            return self._fit(request, self._client)
        return self._client.handle(request)

    def _join(self, invite: Invite) -> Accept:
        if invite.version != __version__:
            raise WireError(
                f"{self.name} runs fedkge {__version__}, the server {invite.version}; install the same version at both"
            )
        if self._client is not None:
            if dict(invite.terms) != self._terms:
                raise WireError(f"{self.name} has accepted other terms; terms do not change while a federation runs")
            return Accept(__version__)
        self._lock()
        graph = load(self._settings.graph)
        configuration = self._settle(invite.terms, graph)
        self._client = self._make_client(configuration, graph)
        self._configuration, self._terms, self._graph = configuration, dict(invite.terms), graph
        self._status.write(state="joined", round=self._client.round, rounds=configuration.rounds, **self._budget())
        return Accept(__version__)

    def _lock(self) -> None:
        """A process of an earlier job may still be ending."""
        self._directory.path.mkdir(parents=True, exist_ok=True)
        ends = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._stack.enter_context(self._directory.locked())
                return
            except RunError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.5)

    def _settle(self, terms: Any, graph: Graph) -> Configuration:
        own = {"data": self._settings.graph, "record": self._settings.record, "threads": self._settings.threads}
        saved = self._directory.read_configuration() if self._directory.exists() else None
        seed = self._settings.seed if self._settings.seed is not None else saved[0].seed if saved else fresh_seed()
        options = {**terms, **self._settings.privacy, **own, "seed": seed}
        numbers = options.pop("wire", "float32")
        self._numbers = "float16" if numbers == "float16" else "float32"
        configuration = parse(options)
        check_defence(configuration)
        provenance = provenance_of((graph,), configuration)
        if saved is None:
            self._directory.create(configuration, provenance)
        elif saved[1].get("configuration") != configuration.identity or saved[1].get("data") != provenance["data"]:
            raise PrivacyError(
                f"{self.name}: the terms, site.toml or the graph are not those that this run began with; "
                "restore them, or choose a new run directory (its ledger then begins anew, and both count)"
            )
        return configuration

    def _make_client(self, configuration: Configuration, graph: Graph) -> Client:
        plan = ClientPlan(
            configuration, configuration.seed or 0, self._settings.number, ("entities",), configuration.threads or 1
        )
        if configuration.defence != "none":
            self._ledger = Ledger.open(self._directory.ledger)
            defence = defence_of(configuration, self.name, graph, self._ledger)
            plan = replace(plan, defence=defence, ledger=self._ledger)
        return Client(self.name, graph, plan, self._directory.checkpoints)

    def _budget(self) -> dict[str, Any]:
        if self._ledger is None:
            return {}
        promise = self._ledger.promises[self.name]
        return {"spent": self._ledger.spent(self.name), "epsilon": promise.epsilon, "delta": promise.delta}

    def _fit(self, request: Fit, client: Client) -> Reply:
        assert self._configuration is not None  # noqa: S101 (it has joined)
        rounds = self._configuration.rounds
        if request.round > rounds:
            raise PrivacyError(f"{self.name} agreed to {rounds} rounds and was asked for round {request.round}")
        self._status.write(state="training", round=request.round, rounds=rounds, **self._budget())
        reply = client.handle(request)
        state = "out of budget" if isinstance(reply, Goodbye) else "uploaded"
        self._status.write(state=state, round=request.round, rounds=rounds, **self._budget())
        return reply

    def _finish(self, request: Finish, client: Client) -> Kept:
        assert self._graph is not None  # noqa: S101 (it has joined)
        graph = self._graph
        self._directory.write_vocabularies(graph.entities, graph.relations)
        self._directory.write_model(
            {
                "entities": request.rows["entities"],
                "own/client-0": np.arange(len(graph.entities), dtype=np.int32),
                "relations/client-0": client.unshared()["relations"],
                "relation_ids/client-0": np.arange(len(graph.relations), dtype=np.int32),
            },
            {"round": request.round},
        )
        self._directory.write_metrics([])
        self._status.write(state="finished", round=request.round, **self._budget())
        return Kept(request.round)


def _outward(error: FedkgeError) -> str:
    """What the server may read of an error: a file's error may name entities and paths, which are the site's own.

    >>> _outward(RunError("/home/me/graph.tsv: no such file"))
    "RunError; the site's own log says more"
    """
    if isinstance(error, WireError):
        return str(error)
    return f"{type(error).__name__}; the site's own log says more"
