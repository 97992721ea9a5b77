"""Files that are whole or absent: written beside, synced, then renamed; tensors as safetensors, never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fedkge.errors import RunError

Tensors = Mapping[str, NDArray[Any]]


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content` so that a crash leaves either the old file or the new one.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a"), b"whole"); Path(folder, "a").read_bytes()
    b'whole'
    """
    beside = path.with_name(path.name + ".partial")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise RunError(
            f"{path}: could not be written ({error.strerror or error}); "
            "free some space or make the folder writable, then `fedkge resume`"
        ) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_tensors(path: Path, tensors: Mapping[Any, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts; the same input gives the same bytes."""
    ordered = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    write_atomically(path, save(ordered, metadata={"fedkge": json.dumps(facts, sort_keys=True)}))


def load_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `save_tensors` wrote; a missing or damaged file is an error that says so."""
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {}).get("fedkge", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118 - not a dict
    except FileNotFoundError as error:
        raise RunError(f"{path}: no such file") from error
    except (SafetensorError, OSError, json.JSONDecodeError, ValueError) as error:
        raise RunError(
            f"{path}: expected a safetensors file, got a damaged one ({error}); "
            "restore it from a copy, or start again with --overwrite"
        ) from error
