"""The files of a run directory that a report is made of; whatever cannot be read is an error that names the file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fedkge.errors import RunError

SOURCES = ("config.toml", "metrics.jsonl", "attacks.json", "exposed.json", "audit.json", "ledger.jsonl")
"""Everything that a report reads."""


def read_record(path: Path, remedy: str) -> dict[str, Any] | None:
    """The JSON object in a file, or None where there is no such file.

    >>> read_record(Path("no-such-run", "attacks.json"), "attack again") is None
    True
    """
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: expected a JSON object, got: {error}; {remedy}") from error
    if not isinstance(content, dict):
        raise RunError(f"{path}: expected a JSON object, got {type(content).__name__}; {remedy}")
    return content


def damaged(path: Path, error: Exception, remedy: str) -> RunError:
    """What to say of a file that lacks what it should hold."""
    return RunError(
        f"{path}: expected what this version of fedkge writes, got {type(error).__name__} {error}; {remedy}"
    )


def fingerprints(run: Path) -> tuple[tuple[str, str], ...]:
    """The start of the sha256 of each file that the report was made from."""
    present = [run / name for name in SOURCES if (run / name).exists()]
    return tuple((path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:16]) for path in present)
