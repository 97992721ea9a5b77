"""The state of a run between rounds, and checks that the files on disk belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from fedkge.base.errors import RunError
from fedkge.federation.client import Client
from fedkge.federation.server import RoundReport, Server
from fedkge.store.durable_files import load_tensors, save_tensors
from fedkge.store.result_files import Count, check_shape


@dataclass(slots=True)
class Memory:
    """Evaluations so far, the best one, bytes moved, and the last round that each client delivered."""

    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -1.0
    best_round: int = 0
    stale: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    delivered: dict[str, int] = field(default_factory=dict)

    def note(self, report: RoundReport) -> None:
        """Count the bytes of a round and the clients that delivered."""
        self.bytes_up += sum(report.bytes_up.values())
        self.bytes_down += sum(report.bytes_down.values())
        self.delivered.update(dict.fromkeys(report.uploads, report.round))


@with_config(ConfigDict(extra="forbid"))
class _MemoryRecord(TypedDict):
    """`Memory` as it is written. Keys with a default in `Memory` may be absent."""

    history: list[dict[str, Any]]
    best: float
    best_round: Count
    stale: Count
    bytes_up: Count
    bytes_down: Count
    delivered: dict[str, Count]


class _ServerFacts(TypedDict):
    round: Count
    memory: _MemoryRecord


_FACTS: TypeAdapter[Any] = TypeAdapter(_ServerFacts)


class Checkpoint:
    """The server's file among the checkpoints; each client writes its own.

    It is written when the run begins and after every round, always after the clients' files. So the clients are
    never behind what the server has received, and ahead of it by at most the round that was interrupted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "server.safetensors"

    def exists(self) -> bool:
        """Whether the run has begun."""
        return self._path.exists()

    @property
    def round(self) -> int:
        """The last round that was saved; 0 before the first."""
        return self._facts(load_tensors(self._path)[1])[0] if self.exists() else 0

    def save(self, server: Server, memory: Memory) -> None:
        """Replace the file with the current state."""
        save_tensors(self._path, server.tables, {"round": server.round, "memory": asdict(memory)})

    def load(self, server: Server, clients: Mapping[str, Client]) -> Memory:
        """Restore the server from the file; returns the memory."""
        tensors, facts = load_tensors(self._path)
        if {kind: table.shape for kind, table in server.tables.items()} != {k: t.shape for k, t in tensors.items()}:
            raise RunError(
                f"{self._path}: the checkpoint does not fit the clients' names. Did the data change? Restore the data, "
                "or start again with --overwrite"
            )
        server.tables.update({kind: tensors[kind] for kind in server.tables})
        server.round, memory = self._facts(facts)
        for name, client in clients.items():
            path = self._folder / f"{name}.safetensors"
            if not path.exists():
                raise RunError(f"{path}: missing; restore it from a copy, or start again with --overwrite")
            first, last = memory.delivered.get(name, 0), server.round + 1
            if not first <= client.round <= last:
                raise RunError(
                    f"{path}: expected {name} between rounds {first} and {last}, as the server saved it, "
                    f"got round {client.round}; restore all checkpoints from one copy, and keep the present ledger"
                )
        return memory

    def _facts(self, facts: Mapping[str, Any]) -> tuple[int, Memory]:
        """The round and the memory in the facts of the file."""
        remedy = "restore it from a copy, or start again with --overwrite"
        check_shape(_FACTS, facts, str(self._path), RunError, remedy)
        return facts["round"], Memory(**facts["memory"])

    def refuse_orphans(self, clients: Mapping[str, Client]) -> None:
        """Refuse clients that have trained if the server's file is missing."""
        ahead = [name for name, client in clients.items() if client.round > 0]
        if ahead:
            raise RunError(f"{self._path}: missing, but {', '.join(ahead)} has trained; restore it from a copy")
