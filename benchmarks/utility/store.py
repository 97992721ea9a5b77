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
        """All cells that are there."""
        return [record for path in sorted(self.folder.glob("*.jsonl")) for record in self._read(path)]

    def names(self, data: str) -> set[str]:
        """The names of the cells of a data set."""
        return {str(record["cell"]) for record in self._read(self._path(data))}

    def add(self, data: str, record: dict[str, Any]) -> None:
        """Keep a cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path(data).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")

    def _path(self, data: str) -> Path:
        return self.folder / f"{Path(data).name}.jsonl"

    def _read(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
