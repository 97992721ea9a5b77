"""Small federations in a folder, the same federation on the embedded engine, and parties as real processes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fedkge as fk
from fedkge.accounting.ledger import Ledger
from fedkge.defences import parse
from fedkge.defences.planning import client_defence
from fedkge.deploy.coordinator import Coordinator
from fedkge.deploy.joint_alignment_rounds import pseudonyms_of
from fedkge.deploy.keys import read_key
from fedkge.deploy.layout import Layout, lay_out
from fedkge.deploy.member import Member
from fedkge.deploy.policy import accept, proposal
from fedkge.deploy.site_graph import canonical_site, raw_graph, site_graph
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.status import read_status
from fedkge.deploy.trial import COMMAND
from fedkge.deploy.wire import Numbers, as_reply, decode, encode
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import Failure, Reply, Request
from fedkge.federation.server import Server, ServerPlan
from fedkge.graph import Graph
from fedkge.graph.shards import summarise
from fedkge.graph.split import Shards, split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.runs.run import Run, shape_of
from fedkge.store.durable_files import load_tensors

SEED = 7
TRAINING: Mapping[str, Any] = {
    "dimension": 8,
    "rounds": 4,
    "local_epochs": 1,
    "batch_size": 64,
    "negatives": 8,
    "seed": SEED,
}
OPEN: Mapping[str, Any] = {"defence": "none"}
DEFENDED: Mapping[str, Any] = {"defence": "dpsgd", "epsilon": 8.0, "noise-seed": 3}
RECOMMENDED: Mapping[str, Any] = {"defence": "recommended", "epsilon": 8.0, "noise-seed": 3}
STEPS: Mapping[str, Any] = {"defence": "noisy-steps", "epsilon": 8.0, "noise-seed": 3}
GIVE_UP_SECONDS = 900.0


def shards(clients: int = 3) -> Shards:
    return split(synthetic_graph(entities=120, relations=6, triples=900, seed=SEED), clients, "entity", SEED)


def small_layout(
    folder: Path,
    privacy: Mapping[str, Any] = OPEN,
    owners: int = 1,
    training: Mapping[str, Any] | None = None,
    federation: Mapping[str, Any] | None = None,
    data: Shards | None = None,
    **site: Any,
) -> Layout:
    """A federation of three under research seeds."""
    more = {"seed": SEED, "threads": 1, **site}
    options = {**TRAINING, **(training or {})}
    return lay_out(folder, data or shards(), options, privacy, federation=federation, site=more, owners=owners)


def aligned(layout: Layout) -> dict[str, Graph]:
    """The graphs that the sites train on."""
    found = {}
    for name, path in layout.sites.items():
        site = read_site(path)
        pseudonymise = pseudonyms_of(site, read_key(site.key))
        assert pseudonymise is not None
        found[name] = site_graph(canonical_site(site, raw_graph(site)), pseudonymise).graph
    return found


def trained(layout: Layout) -> NDArray[np.float32]:
    """The table that `fedkge.train` gets from the same graphs and options; for federations that share every row."""
    return np.asarray(train_embedded(layout).tensors["entities"])


def train_embedded(layout: Layout) -> Run:
    """The run that `fedkge.train` makes of the same graphs and options."""
    graphs = list(aligned(layout).values())
    privacy = read_site(next(iter(layout.sites.values()))).privacy
    options = {**layout.settings.training, **privacy, "evaluate-every": 0}
    return fk.train(Shards("twin", tuple(graphs), summarise(graphs)), **options)


def embedded(layout: Layout) -> NDArray[np.float32]:
    """The table that the same Server and Clients get on the embedded engine."""
    configuration = layout.settings.configuration
    clients = {}
    for name, graph in aligned(layout).items():
        site, ledger = read_site(layout.sites[name]), Ledger.in_memory()
        options = accept(proposal(configuration), site)
        defence = client_defence(options, name, graph, ledger, site.number)
        plan = ClientPlan(options, options.experiment.seed or 0, site.number, ("entities",), 1, defence, ledger)
        clients[name] = Client(name, graph, plan)
    owners = layout.settings.minimum_owners
    plan = ServerPlan(shape_of(configuration), SEED, minimum_owners=owners)
    server = Server(EmbeddedEngine(clients, threads=1), plan)
    while server.round < configuration.training.rounds and server.run_round().uploads:
        pass
    return server.tables["entities"]


def deployed(layout: Layout) -> NDArray[np.float32]:
    """The table that the server kept."""
    return np.asarray(load_tensors(layout.settings.run / "model.safetensors")[0]["entities"])


class OverBytes:
    """A member whose requests and answers are bytes, as between machines."""

    def __init__(self, member: Member, numbers: Numbers = "float32") -> None:
        self.member, self._numbers = member, numbers
        self.spoil: Callable[[bytes], bytes] = lambda content: content

    def handle(self, request: Request) -> Reply | Failure:
        return as_reply(decode(self.spoil(self.member.answer(encode(request, self._numbers)))))


class InOneProcess:
    """Everything but the carrier: coordinator and members, with bytes between them."""

    def __init__(self, layout: Layout, names: tuple[str, ...] = ()) -> None:
        self.layout = layout
        self._stack = ExitStack()
        self.sites = {
            name: OverBytes(self._stack.enter_context(Member(read_site(path))), layout.settings.wire)
            for name, path in layout.sites.items()
            if not names or name in names
        }

    def __enter__(self) -> "InOneProcess":
        return self

    def __exit__(self, *_: object) -> None:
        for thread in threading.enumerate():  # a site that was not waited for ends what it does, as on its own machine
            if thread.name.startswith("ThreadPoolExecutor"):
                thread.join()
        self._stack.close()

    def run(self) -> str:
        engine = EmbeddedEngine(self.sites, threads=1)  # type: ignore[arg-type]
        return Coordinator(engine, self.layout.settings).run()


def after(calls: int, spoil: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """What spoils a site's answers from so many on."""
    seen: list[bytes] = []

    def changed(content: bytes) -> bytes:
        seen.append(content)
        return spoil(content) if len(seen) > calls else content

    return changed


def interrupt(_: bytes) -> bytes:
    raise KeyboardInterrupt


def broken_off(layout: Layout, site: str, calls: int) -> None:
    """A job that ends, as by a power cut, when this site has given so many answers."""
    with InOneProcess(layout) as federation:
        federation.sites[site].spoil = after(calls, interrupt)
        with pytest.raises(KeyboardInterrupt):
            federation.run()


class Party:
    """A server or a site as a process of its own, with the command that a person would type."""

    def __init__(self, kind: str, path: Path, run: Path) -> None:
        self._arguments = [sys.executable, "-c", COMMAND, kind, str(path)]
        self.run = run
        self.output = path.with_name(f"{path.stem}-{kind}.out")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.output.open("ab") as file:
            self.process = subprocess.Popen(
                self._arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=file, umask=0
            )

    @property
    def status(self) -> dict[str, Any]:
        return read_status(self.run)

    @property
    def said(self) -> str:
        log = self.run / "nvflare.log"
        tail = log.read_text(encoding="utf-8", errors="replace")[-3000:] if log.exists() else ""
        return f"{self.output.read_text(encoding='utf-8')}\n--- {log}\n{tail}"

    def kill(self) -> None:
        """kill -9, as a power cut would."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def finish(self, seconds: float = GIVE_UP_SECONDS) -> int:
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end; {self.said}") from None


class Parties:
    """All parties of a federation; whatever still runs at the end is ended."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.server = Party("server", layout.federation, layout.settings.run)
        self.sites = {name: Party("client", path, path.parent / "run") for name, path in layout.sites.items()}

    def __enter__(self) -> "Parties":
        return self

    def __exit__(self, *_: object) -> None:
        for party in (*self.sites.values(), self.server):
            if party.process is not None and not party.ended():
                party.process.terminate()
        for party in (*self.sites.values(), self.server):
            if party.process is not None:
                try:
                    party.process.wait(20)
                except subprocess.TimeoutExpired:
                    party.kill()

    def start(self) -> None:
        for party in (self.server, *self.sites.values()):
            party.start()

    def finish(self) -> None:
        for name, party in {"server": self.server, **self.sites}.items():
            assert party.finish() == 0, f"{name}: {party.said}"

    def wait(self, what: Callable[[], object], seconds: float = GIVE_UP_SECONDS) -> None:
        """Until it is so; an error with everybody's words when it is not in the end."""
        ends = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < ends, f"server: {self.server.said}"
            time.sleep(0.05)

    def wait_for_round(self, number: int, state: str = "training") -> None:
        def reached() -> bool:
            status = self.server.status
            return bool(status.get("round", -1) >= number and status.get("state") == state)

        self.wait(reached)


def spent_rounds(run: Path, site: str) -> list[int | None]:
    """The rounds that a site's ledger has charges for."""
    return [entry.round for entry in Ledger.read(run / "ledger.jsonl").by_round(site)]


def training_options(layout: Layout) -> Any:
    return parse(layout.settings.training)


def notes(run: Path) -> str:
    return json.dumps(read_status(run).get("notes", []))
