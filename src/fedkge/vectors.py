"""Vectors in and out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedkge.federation.messages import Shared
from fedkge.models.tables import Table


def read_vectors(path: Path) -> Mapping[Shared, Mapping[str, Table]]:
    """Placeholder."""
    raise FileNotFoundError(path)
