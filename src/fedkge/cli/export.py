"""`fedkge export`: the vectors, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    from fedkge.api.exports import export as write  # noqa: PLC0415 (heavy)

    exported = write(run, out, format=format_name, client=client, overwrite=overwrite)
    if as_json:
        print_json(
            {"path": str(exported.path), "format": format_name, **exported.counts, "left_out": list(exported.left_out)}
        )
        return
    rows = " and ".join(f"{count:,} {kind}" for kind, count in exported.counts.items())
    stdout().print(f"{exported.path}: {rows}", markup=False, soft_wrap=True)
    if exported.left_out:
        say(f"Clients differ in their {' and '.join(exported.left_out)}: --client NAME writes those of one client")
