"""What everyone saw: broadcasts and uploads of chosen rounds, and each adversary's view of them.

A view hands out only what its holder was sent or sent itself. Attacks read views and nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.base.short_repr import short_repr
from fedkge.federation.messages import Rows, Shared
from fedkge.federation.server import RoundReport
from fedkge.store.durable_files import load_tensors, make_folder, save_tensors

FOLDER = "transcript"

Messages: TypeAlias = Mapping[str, Mapping[Shared, Rows]]
"""Tables by client and kind."""

NOTHING: Messages = MappingProxyType({})


def recorded_rounds(rule: str, rounds: int) -> frozenset[int]:
    """The rounds that a rule keeps: "none", "all", "every:N" or a list like "1,5,10".

    >>> sorted(recorded_rounds("every:5", 12))
    [5, 10]
    """
    if rule == "none":
        return frozenset()
    if rule == "all":
        return frozenset(range(1, rounds + 1))
    try:
        if rule.startswith("every:"):
            step = int(rule.removeprefix("every:"))
            if step < 1:
                raise ValueError(step)
            return frozenset(range(step, rounds + 1, step))
        chosen = frozenset(int(part) for part in rule.split(","))
    except ValueError as error:
        raise ConfigurationError(f"record: expected none, all, every:N or a list like 1,5,10; got {rule!r}") from error
    if not all(1 <= number <= rounds for number in chosen):
        raise ConfigurationError(f"record: expected rounds from 1 to {rounds}, got {rule!r}")
    return chosen


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What one party saw in one round, by client.

    broadcasts  the rows that clients were sent at its beginning
    uploads     the rows that they sent at its end
    results     their rows after the averaging: the server knows everybody's, a client only its own, and only where
                its upload went in (whoever sat the round out is answered nothing)
    private     the tables that a client shares with nobody, as they were when it uploaded: its holder's own alone
    """

    round: int
    broadcasts: Messages = field(default_factory=dict)
    uploads: Messages = field(default_factory=dict)
    results: Messages = field(default_factory=dict)
    private: Messages = field(default_factory=dict)


class Transcript:
    """The record on disk, one file per message: `transcript/round-000005/upload-client-0.safetensors`."""

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER

    def write(self, report: RoundReport, results: Messages = NOTHING, private: Messages = NOTHING) -> None:
        """Record one round; what a crash left of it before is forgotten."""
        folder = self._folder / f"round-{report.round:06d}"
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        facts = {"round": report.round}
        uploads = {name: upload.rows for name, upload in report.uploads.items()}
        kinds = {"broadcast": report.broadcasts, "upload": uploads, "result": results, "private": private}
        for kind, messages in kinds.items():
            for name, rows in messages.items():
                save_tensors(folder / f"{kind}-{name}.safetensors", rows, facts)

    def rounds(self) -> list[int]:
        """The recorded rounds, in order."""
        return sorted(_round_folders(self._folder))

    def view(self, *, server: bool = False, clients: Iterable[str] = ()) -> View:
        """The view of the server, of one client, or of those who collude."""
        return View(self._folder, server, frozenset((clients,) if isinstance(clients, str) else clients))


class View:
    """What the server, a client, or a collusion of them saw.

    The server sees every message; a client sees what it was sent and what it sent, and its own private tables. Who
    holds a view is settled when it is made.
    """

    __slots__ = ("__clients", "__folder", "__server")

    def __init__(self, folder: Path, server: bool, clients: frozenset[str]) -> None:
        if not server and not clients:
            raise ConfigurationError("a view belongs to the server, to clients, or to both: name at least one")
        self.__server, self.__clients, self.__folder = server, clients, folder

    @property
    def server(self) -> bool:
        """Whether the server is among the holders."""
        return self.__server

    @property
    def clients(self) -> frozenset[str]:
        """The clients among the holders."""
        return self.__clients

    def rounds(self) -> list[int]:
        """The recorded rounds in which this view holds something."""
        folders = _round_folders(self.__folder)
        return sorted(number for number, folder in folders.items() if self.__files(folder, "broadcast"))

    def see(self, round_number: int) -> Seen:
        """All that this view holds of one round."""
        folder = self.__folder / f"round-{round_number:06d}"
        if not folder.is_dir():
            raise RunError(f"round {round_number} was not recorded: train with --record all, every:N or a list")
        broadcasts, uploads, results, private = (
            self.__messages(folder, kind) for kind in ("broadcast", "upload", "result", "private")
        )
        if not self.server:
            results = {name: rows for name, rows in results.items() if name in uploads}
        return Seen(round_number, broadcasts, uploads, results, private)

    def __files(self, folder: Path, kind: str) -> dict[str, Path]:
        files = {path.stem.removeprefix(f"{kind}-"): path for path in sorted(folder.glob(f"{kind}-*.safetensors"))}
        all_of_them = self.server and kind != "private"
        return {name: path for name, path in files.items() if all_of_them or name in self.clients}

    def __messages(self, folder: Path, kind: str) -> dict[str, dict[Shared, Rows]]:
        messages: dict[str, dict[Shared, Rows]] = {}
        for name, path in self.__files(folder, kind).items():
            tensors, _ = load_tensors(path)
            messages[name] = {shared: tensors[shared] for shared in _shared(tensors)}
        return messages


def _round_folders(transcript: Path) -> dict[int, Path]:
    """The folders of recorded rounds by number; whatever else lies there is left alone."""
    found = ((path, path.name.removeprefix("round-")) for path in transcript.glob("round-*") if path.is_dir())
    return {int(number): path for path, number in found if number.isascii() and number.isdigit() and len(number) == 6}


def _shared(tensors: Mapping[str, Rows]) -> list[Shared]:
    known: tuple[Shared, Shared] = ("entities", "relations")
    return [kind for kind in known if kind in tensors]
