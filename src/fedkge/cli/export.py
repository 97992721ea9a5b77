"""`fedkge export`: the vectors, for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fedkge.base.errors import RunError
from fedkge.cli.tables import print_json, say, stdout

EXAMPLE = "Example: fedkge export runs/three --format parquet --out vectors.parquet"


def export(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    format_name: Annotated[
        str, typer.Option("--format", metavar="safetensors|parquet|word2vec|pykeen", help="How to write them.")
    ] = "safetensors",
    out: Annotated[
        Path | None, typer.Option(help="File to write (PyKEEN: folder); default: vectors in the run directory.")
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="Whose vectors; default: those that all clients have in common.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is already there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Write the vectors with their names; `train --init` reads all but the PyKEEN folder back."""
    from fedkge.api.training import open_run  # noqa: PLC0415 (heavy)
    from fedkge.base.registry import look_up  # noqa: PLC0415
    from fedkge.runs.vectors import ENDINGS, export_vectors  # noqa: PLC0415

    ending = look_up(ENDINGS, format_name, "export format")
    path = out or run / f"vectors{ending}"
    if os.path.lexists(path) and not overwrite:
        raise RunError(f"{path}: exists already; choose another --out, or say --overwrite")
    exported = export_vectors(open_run(run), path, format_name, client)
    if as_json:
        print_json({"path": str(path), "format": format_name, **exported.rows, "left_out": list(exported.left_out)})
        return
    rows = " and ".join(f"{count:,} {kind}" for kind, count in exported.rows.items())
    stdout().print(f"{path}: {rows}", markup=False, soft_wrap=True)
    if exported.left_out:
        say(f"Clients differ in their {' and '.join(exported.left_out)}: --client NAME writes those of one client")
