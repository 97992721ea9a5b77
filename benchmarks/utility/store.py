"""Measured cells: one file per data set, one line per cell, appended as they come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Store:
    """The cells of one folder. Several sweeps may add to it at the same time, a line each."""

    folder: Path

    def records(self) -> list[dict[str, Any]]:
        """The cells that are there, each as it was measured last."""
        found = [record for path in sorted(self.folder.glob("*.jsonl")) for record in self._read(path)]
        return list({record["cell"]: record for record in found}.values())

    def has(self, data: str, name: str, digest: str) -> bool:
        """Whether a cell was measured with these settings."""
        return any((record["cell"], record["digest"]) == (name, digest) for record in self._read(self._path(data)))

    def add(self, data: str, record: dict[str, Any]) -> None:
        """Keep a cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(data)
        before = path.read_bytes() if path.exists() else b""
        torn = before and not before.endswith(b"\n")
        with path.open("a", encoding="utf-8") as lines:
            lines.write(("\n" if torn else "") + json.dumps(record) + "\n")

    def _path(self, data: str) -> Path:
        return self.folder / f"{Path(data).name}.jsonl"

    def _read(self, path: Path) -> list[dict[str, Any]]:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [record for record in map(_parsed, lines) if record]


def _parsed(line: str) -> dict[str, Any]:
    """A line's cell; nothing for a line that an interruption has torn."""
    try:
        record: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return record
