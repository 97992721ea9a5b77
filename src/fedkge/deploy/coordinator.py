"""The server's side of a federation on several machines: admit the sites, run the rounds, continue after a crash."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge import __version__
from fedkge.base.errors import FedkgeError, RunError
from fedkge.base.plain_files import read_json
from fedkge.base.short_repr import short_repr
from fedkge.configuration import Configuration
from fedkge.deploy.federation_file import FederationFile
from fedkge.deploy.greetings import Greetings
from fedkge.deploy.joint_alignment_rounds import carry
from fedkge.deploy.ledger_ends import LedgerEnds
from fedkge.deploy.logs import log_of
from fedkge.deploy.policy import proposal
from fedkge.deploy.status import FINISHED, Status
from fedkge.federation.aggregation import make_aggregation
from fedkge.federation.checkpoints import Checkpoint, Memory
from fedkge.federation.messages import (
    NO_LIMIT,
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
    Upload,
)
from fedkge.federation.server import RoundReport, Server, ServerPlan
from fedkge.graph import Vocabulary
from fedkge.runs.directory import AT_THE_SITES, MODEL, RunDirectory
from fedkge.runs.run import scorer_of, shape_of
from fedkge.runs.transcript import Transcript, recorded_rounds
from fedkge.store.durable_files import make_folder, write_atomically
from fedkge.store.randomness import fresh_seed

LOG = log_of("fedkge.server")
REJOIN, FAILED = "rejoin", "failed"
REJOIN_FILE = "rejoin"
"""`fedkge server` creates this file in the run directory when a site is back. A new job then starts after the round."""


HANDED_OUT = "handed-out.json"
ROUNDS_FILE = "rounds.jsonl"
"""Loss and seconds of each round. The server writes no metrics.jsonl: it has no triples to rank."""
RESTORE = "restore it, or remove it: the server then offers the model to all sites again"


def is_over(run: Path) -> bool:
    """Whether all rounds are done and the final model is on disk."""
    return (run / MODEL).exists()


def handed_out(run: Path) -> set[str]:
    """The sites that have the final rows; empty before the end."""
    path = run / HANDED_OUT
    if not path.exists():
        return set()
    names = read_json(path, RunError, RESTORE)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RunError(f"{path}: expected a list of sites, got {names!r:.60}; {RESTORE}")
    return set(names)


@short_repr()
@dataclass(frozen=True, slots=True)
class Members:
    """An engine restricted to the sites that accepted the terms. It records where the sites' ledgers end."""

    engine: Engine
    names: frozenset[str]
    ends: LedgerEnds
    tell: Callable[[str], None]

    def clients(self) -> Sequence[str]:
        """The members that can be reached now, sorted."""
        return tuple(name for name in self.engine.clients() if name in self.names)

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = NO_LIMIT
    ) -> Mapping[str, Reply | Failure]:
        """Exchange messages, and save the ends of the sites' ledgers before the answers are used."""
        replies = self.engine.exchange(requests, timeout_seconds=timeout_seconds)
        for name in self.ends.note({name: one for name, one in replies.items() if isinstance(one, Accept | Upload)}):
            self.tell(f"{name}: its ledger has fewer releases than before; was it restored from an older copy?")
        return replies


class Coordinator:
    """Runs one job: from the invitations to the last round, or until a new job is needed.

    The server writes its checkpoint after every round. A site writes its checkpoint before an upload leaves. So the
    next job continues where this one stopped, whichever process was killed.
    """

    def __init__(self, engine: Engine, settings: FederationFile) -> None:
        self._engine, self._settings = engine, settings
        self._directory = RunDirectory(settings.run)
        self._checkpoint = Checkpoint(self._directory.checkpoints)
        self._greetings = Greetings(self._directory.checkpoints / "greetings")
        self._status = Status(settings.run)
        self._memory = Memory()
        self._ends = LedgerEnds(self._directory.checkpoints)
        self._members = Members(engine, frozenset(), self._ends, self._tell)

    def run(self) -> str:
        """Run the remaining rounds; returns "finished", or the reason for another job."""
        make_folder(self._directory.path)
        with self._directory.locked():
            (self._directory.path / REJOIN_FILE).unlink(missing_ok=True)
            try:
                return self._run()
            except FedkgeError as error:
                reached = self._checkpoint.round
                self._status.write(state=FAILED, error=str(error), exit_code=error.exit_code, round=reached)
                raise

    def _run(self) -> str:
        self._status.write(state="inviting", present=list(self._engine.clients()))
        configuration = self._settle()
        server = self._assemble(configuration)
        state = self._rounds(server, configuration)
        if state == FINISHED:
            self._finish(server, configuration)
        self._say(server, configuration, state)
        return state

    def _settle(self) -> Configuration:
        configuration = self._settings.configuration
        if self._directory.exists():
            saved, provenance = self._directory.read_configuration()
            if configuration.experiment.seed is None:
                configuration = configuration.updated(seed=saved.experiment.seed)
            if provenance.get("configuration") != configuration.identity:
                raise RunError(
                    f"{self._directory.path}: federation.toml was changed after the federation began; restore it, or "
                    "choose a new run directory"
                )
            return configuration
        if configuration.experiment.seed is None:
            configuration = configuration.updated(seed=fresh_seed())
        provenance = {"fedkge": __version__, "configuration": configuration.identity, "data": AT_THE_SITES}
        self._directory.create(configuration, provenance)
        return configuration

    def _assemble(self, configuration: Configuration) -> Server:
        accepted = self._invite(configuration)
        width = scorer_of(configuration).entity_width(configuration.model.dimension)
        greetings, strangers = self._greet(accepted, width)
        self._members = Members(self._engine, frozenset(accepted) - set(strangers), self._ends, self._tell)
        server = Server(self._members, self._plan(configuration), greetings)
        for name, reason in server.excluded.items():
            self._tell(f"{name} does not take part: {reason}")
        for name, reason in server.doubted.items():
            self._tell(f"{name} {reason}")
        self._all_at_first({*accepted} - set(strangers) - set(server.excluded))
        if self._checkpoint.exists():
            self._memory = self._checkpoint.load(server, {})
        else:
            self._directory.write_vocabularies(Vocabulary(tuple(server.names["entities"])), Vocabulary(()))
            self._checkpoint.save(server, self._memory)
        return server

    def _plan(self, configuration: Configuration) -> ServerPlan:
        return ServerPlan(
            shape_of(configuration),
            configuration.experiment.seed or 0,
            make_aggregation(configuration.federation.aggregation),
            configuration.federation.fraction,
            configuration.federation.least_clients,
            configuration.federation.largest_row_norm,
            self._settings.minimum_owners,
            self._settings.round_seconds,
        )

    def _invite(self, configuration: Configuration) -> list[str]:
        """The sites that accept the terms, run this version and have the key that most sites have."""
        known = [name for name in self._engine.clients() if name in self._settings.sites]
        invite = Invite(__version__, self._settings.name, proposal(configuration), self._settings.wire)
        invites = {name: replace(invite, **asdict(self._ends.of(name))) for name in known}
        invited = Members(self._engine, frozenset(known), self._ends, self._tell)
        replies = invited.exchange(invites, timeout_seconds=self._settings.round_seconds)
        prints = Counter(reply.fingerprint for reply in replies.values() if isinstance(reply, Accept))
        usual = prints.most_common(1)[0][0] if prints else ""
        accepted = []
        for name, reply in sorted(replies.items()):
            if isinstance(reply, Accept) and reply.version == __version__ and reply.fingerprint == usual:
                accepted.append(name)
            elif isinstance(reply, Accept) and reply.version == __version__:
                self._tell(f"{name} does not take part: its key or its name rules differ from those of the other sites")
            else:
                self._tell(f"{name} does not take part: {_reason(reply)}")
        self._all_at_first(accepted)
        unaligned = [name for name in accepted if not getattr(replies[name], "aligned", True)]
        if not self._checkpoint.exists():
            self._align(unaligned)
            return accepted
        for name in unaligned:
            self._tell(
                f"{name} does not take part: it has lost the joint pseudonyms of this federation; it must restore "
                "pseudonyms.json in its run directory"
            )
        return [name for name in accepted if name not in unaligned]

    def _align(self, unaligned: Sequence[str]) -> None:
        """Run the joint alignment before the first round. If one site lacks its pseudonyms, all sites repeat it."""
        if not unaligned:
            return
        self._status.write(state="aligning", present=list(self._engine.clients()))
        carry(self._engine, self._settings.sites, self._settings.round_seconds)

    def _all_at_first(self, present: Sequence[str] | set[str]) -> None:
        """The union of names is fixed once, so the first round needs every site."""
        missing = sorted(set(self._settings.sites) - set(present))
        if missing and not self._checkpoint.exists():
            raise RunError(
                f"the first round needs all sites, but {', '.join(missing)} did not join; the notes above say why"
            )

    def _greet(self, accepted: Sequence[str], width: int) -> tuple[dict[str, Greeting], dict[str, str]]:
        """All sites' first greetings, and the sites whose greeting is missing or has changed, with the reason."""
        replies = self._engine.exchange(
            {name: Hello() for name in accepted}, timeout_seconds=self._settings.round_seconds
        )
        strangers: dict[str, str] = {}
        settled = self._checkpoint.exists()
        for name in accepted:
            reply = replies.get(name)
            if isinstance(reply, Greeting):
                reason = self._greetings.check(name, reply, width, settled)
            else:
                reason = _reason(reply)
            if reason:
                strangers[name] = reason
                self._tell(f"{name} does not take part: {reason}")
        self._all_at_first({*accepted} - set(strangers))
        return self._greetings.all(), strangers

    def _rounds(self, server: Server, configuration: Configuration) -> str:
        recorded = recorded_rounds(configuration.experiment.record, configuration.training.rounds)
        began_with = server.round
        while server.round < configuration.training.rounds:
            if server.round > began_with and (self._directory.path / REJOIN_FILE).exists():
                return REJOIN  # only after one round of this job: a site that comes and goes cannot stop the others
            self._say(server, configuration, "training")
            began = time.perf_counter()
            report = server.run_round()
            for name, reason in report.refused.items():
                self._tell(f"round {server.round + (not report.uploads)}: {name} was left out: {reason}")
            if not report.uploads:
                self._tell("too few sites have privacy budget left; the federation ends here")
                return FINISHED
            self._keep(server, report, report.round in recorded, time.perf_counter() - began)
        return FINISHED

    def _keep(self, server: Server, report: RoundReport, record: bool, seconds: float) -> None:
        if record:
            results = {name: server.rows_for(name) for name in report.broadcasts}
            Transcript(self._directory.path).write(report.messages(results))
        self._memory.note(report)
        left_out = {"left_out": sorted(report.refused)} if report.refused else {}
        self._memory.history.append({"round": report.round, "loss": report.loss, "seconds": seconds, **left_out})
        self._checkpoint.save(server, self._memory)

    def _finish(self, server: Server, configuration: Configuration) -> None:
        tensors: dict[str, NDArray[np.float32] | NDArray[np.int32]] = {"entities": server.tables["entities"]}
        for name, places in server.owners["entities"].items():
            tensors[f"own/{name}"] = places.astype(np.int32)
        self._directory.write_model(tensors, {"round": server.round})
        lines = "".join(json.dumps(line) + "\n" for line in self._memory.history)
        write_atomically(self._directory.path / ROUNDS_FILE, lines.encode())
        self._say(server, configuration, "handing out the model")
        requests = {name: Finish(server.round, server.rows_for(name)) for name in self._members.clients()}
        replies = self._engine.exchange(requests, timeout_seconds=self._settings.round_seconds)
        done = {
            *handed_out(self._directory.path),
            *(name for name, reply in replies.items() if isinstance(reply, Kept)),
        }
        write_atomically(self._directory.path / HANDED_OUT, json.dumps(sorted(done)).encode())
        for name in sorted(set(self._settings.sites) - done):
            reason = _reason(replies.get(name))
            self._tell(f"{name} does not have the model: {reason}; start `fedkge server` again when the site is back")

    def _say(self, server: Server, configuration: Configuration, state: str) -> None:
        present = [name for name in self._members.clients() if name not in server.excluded]
        seconds = usual_seconds(self._memory.history)
        self._status.write(
            state=state,
            round=server.round,
            rounds=configuration.training.rounds,
            present=present,
            refused=sorted(set(self._engine.clients()) - set(present)),
            gone=sorted(server.gone),
            seconds_left=None if seconds is None else seconds * (configuration.training.rounds - server.round),
        )

    def _tell(self, line: str) -> None:
        LOG.warning("%s", line)
        self._status.note(line)


def usual_seconds(history: Sequence[Mapping[str, Any]]) -> float | None:
    """Seconds per round: the median of the last ten rounds. Rounds that left a site out are skipped; they waited.

    >>> usual_seconds([{"seconds": 2.0}, {"seconds": 3.0}, {"seconds": 600.0, "left_out": ["north"]}])
    2.5
    """
    times = [record["seconds"] for record in history if "seconds" in record and not record.get("left_out")]
    return statistics.median(times[-10:]) if times else None


def _reason(reply: object) -> str:
    if isinstance(reply, Failure):
        return reply.reason
    if isinstance(reply, Accept):
        return f"it runs fedkge {reply.version}, this server runs {__version__}"
    return "it is not connected" if reply is None else f"got {type(reply).__name__}"
