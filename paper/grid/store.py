"""Where measured cells are kept, by name: a file for each, or a line for each. Both know a cell of other settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedkge.base.errors import RunError
from fedkge.store.durable_files import make_folder, write_atomically

FORMAT = 1
NAME, DIGEST = "cell", "digest"


def digest_of(settings: Any) -> str:
    """A hash of settings as they are written: what a cell is measured again for when it changes.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1}) != digest_of({"a": 1})
    True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


class Store(Protocol):
    """What a grid asks of a store; a cell's content holds the digest of its settings."""

    def has(self, name: str, digest: str) -> bool:
        """Whether a cell was measured with these settings."""

    def add(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep a cell, in the place of one of that name."""

    def cells(self) -> Iterator[dict[str, Any]]:
        """The cells that are there, each as it was measured last."""


@dataclass(frozen=True)
class Files(Store):
    """One JSON file per cell: written whole or not at all."""

    folder: Path
    pattern: str = "*"
    """The names that belong to it, where a folder holds other files too."""

    def path(self, name: str) -> Path:
        """Where a cell is kept."""
        return self.folder / f"{name}.json"

    def has(self, name: str, digest: str) -> bool:
        """Whether a cell was measured with these settings."""
        return self.path(name).exists() and self.read(name)[DIGEST] == digest

    def add(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep a cell."""
        make_folder(self.folder)
        text = json.dumps({"format": FORMAT, **content}, indent=1, allow_nan=False) + "\n"
        write_atomically(self.path(name), text.encode())

    def read(self, name: str) -> dict[str, Any]:
        """One cell."""
        path = self.path(name)
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT or DIGEST not in content:
                raise ValueError("another format")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{path}: not a cell of this version ({error}); remove it, and it is measured again"
            ) from error
        return content

    def cells(self) -> Iterator[dict[str, Any]]:
        """All of them, by name."""
        return (self.read(path.stem) for path in sorted(self.folder.glob(f"{self.pattern}.json")))


@dataclass(frozen=True)
class Lines(Store):
    """One file per data set, one line per cell, appended as they come; for results of hundreds of small cells.

    A cell's content names its data set. A line that an interruption has torn does no harm.
    """

    folder: Path

    def has(self, name: str, digest: str) -> bool:
        """Whether a cell was measured with these settings."""
        return self.digests().get(name) == digest

    def digests(self) -> dict[str, str]:
        """The settings of every cell that is there, by its name."""
        return {cell[NAME]: cell[DIGEST] for cell in self._lines()}

    def add(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep a cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{Path(content['data']).name}.jsonl"
        before = path.read_bytes() if path.exists() else b""
        torn = before and not before.endswith(b"\n")
        line = ("\n" if torn else "") + json.dumps({NAME: name, **content}) + "\n"
        with path.open("ab", buffering=0) as lines:
            lines.write(line.encode())  # in one piece, since other processes add lines too

    def cells(self) -> Iterator[dict[str, Any]]:
        """Each as it was measured last."""
        return iter({cell[NAME]: cell for cell in self._lines()}.values())

    def _lines(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue
