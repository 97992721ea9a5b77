"""The files of a run directory that a report is made of; whatever cannot be read is an error that names the file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fedkge.base.errors import RunError
from fedkge.base.plain_files import read_bytes

SOURCES = ("config.toml", "metrics.jsonl", "attacks.json", "exposed.json", "audit.json", "ledger.jsonl")
"""Everything that a report reads."""


def damaged(path: Path, error: Exception, remedy: str) -> RunError:
    """What to say of a file that lacks what it should hold."""
    return RunError(
        f"{path}: expected what this version of fedkge writes, got {type(error).__name__} {error}; {remedy}"
    )


def fingerprints(run: Path) -> tuple[tuple[str, str], ...]:
    """The start of the sha256 of each file that the report was made from."""
    present = [run / name for name in SOURCES if (run / name).exists()]
    return tuple((path.name, hashlib.sha256(read_bytes(path, RunError)).hexdigest()[:16]) for path in present)
