"""Write the vectors of a run for other programs."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from fedkge.api.opening import RunLike, directory_of, opened
from fedkge.base.errors import RunError
from fedkge.base.registry import look_up
from fedkge.runs.vectors import ENDINGS, Exported, export_vectors


def export(
    run: RunLike,
    out: str | PathLike[str] | None = None,
    *,
    format: str = "safetensors",  # noqa: A002
    client: str | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write the vectors with their names, as safetensors, parquet, word2vec or pykeen.

    Without `out` the file is `vectors` in the run directory. Without `client`, the vectors that all clients have in
    common are written. `fk.train(..., init=FILE)` starts from all but the PyKEEN folder.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> run = fk.train(fk.synthetic_graph(60, 4, 400, seed=1), rounds=1, dimension=8, negatives=8)
    >>> with TemporaryDirectory() as folder:
    ...     export(run, f"{folder}/vectors.parquet", format="parquet").counts
    {'entities': 60, 'relations': 4}
    """
    ending = look_up(ENDINGS, format, "export format")
    path = Path(out) if out is not None else directory_of(run) / f"vectors{ending}"
    if os.path.lexists(path) and not overwrite:
        raise RunError(f"{path}: exists already; choose another --out, or say --overwrite")
    return export_vectors(opened(run), path, format, client)
