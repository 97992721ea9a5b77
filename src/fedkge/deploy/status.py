"""A job process reports its state to the command that started it, in one small file that is always complete."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from fedkge.base.errors import RunError
from fedkge.base.plain_files import read_json_object
from fedkge.base.text import printable
from fedkge.store.durable_files import make_folder, write_atomically

FILE = "status.json"
FINISHED, HAS_MODEL = "finished", "has the model"
MOST_NOTES, LONGEST_NOTE = 50, 4_000


class Status:
    """The state of a run directory, for people and for the command that watches it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Status(Path(folder)).write(state="training", round=3)
    ...     read_status(Path(folder))["round"]
    3
    """

    def __init__(self, run: Path) -> None:
        self._path = run / FILE
        before = read_status(run)
        self._facts: dict[str, Any] = {}
        self._notes: list[str] = list(before.get("notes", []))
        self._noted = int(before.get("noted", len(self._notes)))

    def write(self, **facts: Any) -> None:
        """Replace the state; the notes stay."""
        self._facts = facts
        self._save()

    def note(self, line: str) -> None:
        """Add a line that the command prints once."""
        self._notes = [*self._notes, f"{time.strftime('%H:%M:%S')} {printable(line, LONGEST_NOTE)}"][-MOST_NOTES:]
        self._noted += 1
        self._save()

    def _save(self) -> None:
        record = {**self._facts, "notes": self._notes, "noted": self._noted}
        make_folder(self._path.parent)
        write_atomically(self._path, json.dumps(record).encode())


def read_status(run: Path) -> dict[str, Any]:
    """The last status; empty before the first."""
    try:
        return read_json_object(run / FILE, RunError)
    except RunError:
        return {}
