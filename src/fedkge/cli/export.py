"""`fedkge export`: the vectors, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: fedkge export runs/three --format parquet --out vectors.parquet"


def export(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
) -> None:
    """Write the vectors with their names."""
