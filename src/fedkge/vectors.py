"""Vectors in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedkge.federation.messages import Shared
from fedkge.graph import Graph
from fedkge.models.tables import Table


def read_vectors(path: Path) -> Mapping[Shared, Mapping[str, Table]]:
    """Placeholder."""
    raise FileNotFoundError(path)


def start_vectors(path: str, graphs: Sequence[Graph]) -> Mapping[Shared, Mapping[str, Table]] | None:
    """Placeholder."""
    return read_vectors(Path(path)) if path else None
