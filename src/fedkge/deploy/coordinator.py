"""The server's side of a federation on several machines: who is there, the rounds, and going on after a crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge import __version__
from fedkge.configuration import Configuration
from fedkge.deploy.federation_file import FederationFile
from fedkge.deploy.status import Status
from fedkge.deploy.wire import decode, encode
from fedkge.errors import RunError
from fedkge.federation.checkpoints import Checkpoint, Memory
from fedkge.federation.messages import (
    Accept,
    Engine,
    Failure,
    Finish,
    Greeting,
    Hello,
    Invite,
    Kept,
    Reply,
    Request,
)
from fedkge.federation.randomness import fresh_seed
from fedkge.federation.run import RunDirectory, shape_of
from fedkge.federation.server import RoundReport, Server, ServerPlan
from fedkge.federation.storage import make_folder, write_atomically
from fedkge.federation.transcript import Transcript, recorded_rounds
from fedkge.graph import Vocabulary

LOG = logging.getLogger("fedkge.server")
REJOIN = "rejoin"
"""A file in the run directory by which the command asks for a new job after this round: a site has come back."""

TERMS = (
    "model",
    "dimension",
    "margin",
    "norm",
    "strategy",
    "aggregation",
    "rounds",
    "local_epochs",
    "local_steps",
    "optimiser",
    "optimiser_state",
    "learning_rate",
    "learning_rate_decay",
    "batch_size",
    "negatives",
    "negative_group",
    "corrupt",
    "temperature",
    "regularisation",
    "noise_step",
    "evaluate_every",
    "validation_triples",
)


class Members:
    """An engine restricted to the sites that accepted the terms."""

    def __init__(self, engine: Engine, names: Sequence[str]) -> None:
        self._engine, self._names = engine, frozenset(names)

    def clients(self) -> Sequence[str]:
        """Those of them that can be reached now, sorted."""
        return tuple(name for name in self._engine.clients() if name in self._names)

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = float("inf")
    ) -> Mapping[str, Reply | Failure]:
        """Pass on."""
        return self._engine.exchange(requests, timeout_seconds=timeout_seconds)


class Coordinator:
    """Drives one job: from the invitations to the last round, or to the point where a new job is needed."""

    def __init__(self, engine: Engine, settings: FederationFile) -> None:
        self._engine, self._settings = engine, settings
        self._directory = RunDirectory(settings.run)
        self._checkpoint = Checkpoint(self._directory.checkpoints)
        self._status = Status(settings.run)
        self._memory = Memory()

    def run(self) -> str:
        """All rounds that are left; "finished", or why there must be another job."""
        make_folder(self._directory.path)
        with self._directory.locked():
            (self._directory.path / REJOIN).unlink(missing_ok=True)
            configuration = self._settle()
            server = self._assemble(configuration)
            state = self._rounds(server, configuration)
            if state == "finished":
                self._finish(server, configuration)
            return state

    def _settle(self) -> Configuration:
        configuration = self._settings.configuration
        if self._directory.exists():
            saved, provenance = self._directory.read_configuration()
            if configuration.seed is None:
                configuration = configuration.model_copy(update={"seed": saved.seed})
            if provenance.get("configuration") != configuration.identity:
                raise RunError(
                    f"{self._directory.path}: federation.toml was changed after the federation began; restore it, or "
                    "choose a new run directory"
                )
            return configuration
        if configuration.seed is None:
            configuration = configuration.model_copy(update={"seed": fresh_seed()})
        provenance = {"fedkge": __version__, "configuration": configuration.identity, "data": "at the sites"}
        self._directory.create(configuration, provenance)
        return configuration

    def _assemble(self, configuration: Configuration) -> Server:
        accepted = self._invite(configuration)
        greetings = self._greetings(accepted)
        members = Members(self._engine, accepted)
        server = Server(members, self._plan(configuration), greetings)
        if self._checkpoint.exists():
            self._memory = self._checkpoint.load(server, {})
        else:
            names = Vocabulary(tuple(server.names["entities"]))
            self._directory.write_vocabularies(names, Vocabulary(()))
            self._checkpoint.save(server, self._memory)
        return server

    def _plan(self, configuration: Configuration) -> ServerPlan:
        return ServerPlan(
            shape_of(configuration),
            configuration.seed or 0,
            configuration.aggregation == "weighted",
            configuration.fraction,
            configuration.minimum_clients,
            configuration.largest_row_norm,
            timeout_seconds=self._settings.round_seconds,
        )

    def _invite(self, configuration: Configuration) -> list[str]:
        """Who accepts the terms; at the very first everybody must."""
        known = [name for name in self._engine.clients() if name in self._settings.sites]
        terms = {name: getattr(configuration, name) for name in TERMS} | {"wire": self._settings.wire}
        requests = {name: Invite(__version__, terms) for name in known}
        replies = self._engine.exchange(requests, timeout_seconds=self._settings.round_seconds)
        refusals = {
            name: _reason(reply)
            for name, reply in sorted(replies.items())
            if not (isinstance(reply, Accept) and reply.version == __version__)
        }
        for name, reason in refusals.items():
            self._tell(f"{name} does not take part: {reason}")
        accepted = [name for name in known if name not in refusals]
        missing = sorted(set(self._settings.sites) - set(accepted))
        if missing and not self._checkpoint.exists():
            raise RunError(f"the first round needs all sites, but {', '.join(missing)} did not accept")
        return accepted

    def _greetings(self, accepted: Sequence[str]) -> dict[str, Greeting]:
        """The sites' greetings, as they were at first; whoever greets otherwise now has other data."""
        folder = self._directory.checkpoints / "greetings"
        make_folder(folder)
        replies = self._engine.exchange(
            {name: Hello() for name in accepted}, timeout_seconds=self._settings.round_seconds
        )
        for name, reply in sorted(replies.items()):
            path = folder / f"{name}.safetensors"
            if not isinstance(reply, Greeting):
                raise RunError(f"{name} did not join the federation: {_reason(reply)}")
            content = encode(reply)
            if not path.exists():
                write_atomically(path, content)
            elif path.read_bytes() != content:
                raise RunError(f"{name} has other names than when the federation began: was its graph changed?")
        return {path.stem: _greeting(path) for path in sorted(folder.glob("*.safetensors"))}

    def _rounds(self, server: Server, configuration: Configuration) -> str:
        recorded = recorded_rounds(configuration.record, configuration.rounds)
        while server.round < configuration.rounds:
            if (self._directory.path / REJOIN).exists():
                return REJOIN
            self._say(server, configuration, "waiting for uploads")
            began = time.perf_counter()
            report = server.run_round()
            if not report.uploads:
                self._tell("nobody has a budget left; the federation ends here")
                return "finished"
            self._keep(server, report, report.round in recorded, time.perf_counter() - began)
        return "finished"

    def _keep(self, server: Server, report: RoundReport, record: bool, seconds: float) -> None:
        for name, reason in report.refused.items():
            self._tell(f"round {report.round}: {name} was left out: {reason}")
        if record:
            results = {name: server.rows_for(name) for name in report.broadcasts}
            Transcript(self._directory.path).write(report, results)
        self._memory.note(report)
        self._memory.history.append({"round": report.round, "loss": report.loss, "seconds": seconds})
        self._checkpoint.save(server, self._memory)

    def _finish(self, server: Server, configuration: Configuration) -> None:
        tensors: dict[str, NDArray[Any]] = {"entities": server.tables["entities"]}
        for name, places in server.owners["entities"].items():
            tensors[f"own/{name}"] = places.astype(np.int32)
        self._directory.write_model(tensors, {"round": server.round})
        self._say(server, configuration, "handing out the model")
        requests = {name: Finish(server.round, server.rows_for(name)) for name in self._engine.clients()}
        replies = self._engine.exchange(requests, timeout_seconds=self._settings.round_seconds)
        for name, reply in sorted(replies.items()):
            if not isinstance(reply, Kept):
                self._tell(f"{name} has not kept the final rows: {_reason(reply)}")
        self._say(server, configuration, "finished")

    def _say(self, server: Server, configuration: Configuration, state: str) -> None:
        self._status.write(
            state=state,
            round=server.round,
            rounds=configuration.rounds,
            present=list(self._engine.clients()),
            gone=sorted(server.gone),
        )

    def _tell(self, line: str) -> None:
        LOG.warning("%s", line)
        self._status.note(line)


def _reason(reply: object) -> str:
    if isinstance(reply, Failure):
        return reply.reason
    if isinstance(reply, Accept):
        return f"it runs fedkge {reply.version}, this server {__version__}"
    return f"got {type(reply).__name__}"


def _greeting(path: Path) -> Greeting:
    message = decode(path.read_bytes())
    if not isinstance(message, Greeting):
        raise RunError(f"{path}: expected a greeting, got {type(message).__name__}; restore it from a copy")
    return message
