"""The transcript on disk: the messages of chosen rounds, and each party's part of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.runs.round import Messages, Parties, Round, Rows, Shared
from fedkge.store.durable_files import load_tensors, make_folder, save_tensors

FOLDER = "transcript"


def recorded_rounds(rule: str, rounds: int) -> frozenset[int]:
    """The rounds that a rule records: "none", "all", "every:N" or a list like "1,5,10".

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


class Transcript:
    """The transcript on disk, one file per message: `transcript/round-000005/upload-client-0.safetensors`."""

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER

    def write(self, messages: Round) -> None:
        """Record one round. Files of the same round that a crash left behind are removed."""
        folder = self._round_folder(messages.number)
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        kinds: dict[str, Messages] = {
            "broadcast": messages.broadcasts,
            "upload": messages.uploads,
            "result": messages.results,
            "private": messages.private,
        }
        for kind, tables in kinds.items():
            for name, rows in tables.items():
                save_tensors(folder / f"{kind}-{name}.safetensors", rows, {"round": messages.number})

    def rounds(self, parties: Parties | None = None) -> list[int]:
        """The recorded rounds in order. With `parties`: only rounds in which one of them received a message."""
        folders = _round_folders(self._folder)
        if parties is None:
            return sorted(folders)
        return sorted(number for number, folder in folders.items() if _files(folder, "broadcast", parties))

    def read(self, round_number: int, parties: Parties) -> Round:
        """What these parties saw of one round. Files of other parties are not opened.

        The server knows the result of every client. A client knows only its own, and only if its upload was averaged: a
        client that did not take part in the round gets no answer.
        """
        folder = self._round_folder(round_number)
        if not folder.is_dir():
            raise RunError(f"round {round_number} was not recorded: train with --record all, every:N or a list")
        broadcasts, uploads, results, private = (
            _messages(folder, kind, parties) for kind in ("broadcast", "upload", "result", "private")
        )
        if not parties.server:
            results = {name: rows for name, rows in results.items() if name in uploads}
        return Round(round_number, broadcasts, uploads, results, private)

    def _round_folder(self, round_number: int) -> Path:
        return self._folder / f"round-{round_number:06d}"


def _round_folders(transcript: Path) -> dict[int, Path]:
    """The folders of recorded rounds by number. Other entries are ignored."""
    found = ((path, path.name.removeprefix("round-")) for path in transcript.glob("round-*") if path.is_dir())
    return {int(number): path for path, number in found if number.isascii() and number.isdigit() and len(number) == 6}


def _files(folder: Path, kind: str, parties: Parties) -> dict[str, Path]:
    files = {path.stem.removeprefix(f"{kind}-"): path for path in sorted(folder.glob(f"{kind}-*.safetensors"))}
    return {name: path for name, path in files.items() if parties.hold(name, private=kind == "private")}


def _messages(folder: Path, kind: str, parties: Parties) -> dict[str, dict[Shared, Rows]]:
    messages: dict[str, dict[Shared, Rows]] = {}
    for name, path in _files(folder, kind, parties).items():
        tensors, _ = load_tensors(path)
        messages[name] = {shared: tensors[shared] for shared in _shared(tensors)}
    return messages


def _shared(tensors: Mapping[str, Rows]) -> list[Shared]:
    known: tuple[Shared, Shared] = ("entities", "relations")
    return [kind for kind in known if kind in tensors]
