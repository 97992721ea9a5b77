"""`fedkge export`: the vectors, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.api.exports import export as write
from fedkge.cli.arguments import Json, RunPath
from fedkge.cli.tables import print_json, print_line, say

EXAMPLE = "Example: fedkge export runs/three --format parquet --out vectors.parquet"


def export(
    run: RunPath,
    format_name: Annotated[
        str, typer.Option("--format", metavar="safetensors|parquet|word2vec|pykeen", help="Format of the file.")
    ] = "safetensors",
    out: Annotated[
        Path | None,
        typer.Option(help="File to write (PyKEEN: folder). Without it, the file vectors in the run directory."),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option(help="Export the vectors of this client. Without it, the vectors that all clients share."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Write the embedding vectors for other programs.

    Each vector has the name of its entity or relation. fedkge train --init reads every format except pykeen.
    """
    exported = write(run, out, format=format_name, client=client, overwrite=overwrite)
    if as_json:
        print_json(
            {"path": str(exported.path), "format": format_name, **exported.counts, "left_out": list(exported.left_out)}
        )
        return
    rows = " and ".join(f"{count:,} {kind}" for kind, count in exported.counts.items())
    print_line(f"{exported.path}: {rows}")
    if exported.left_out:
        left_out = " and ".join(exported.left_out)
        say(f"Not written: {left_out}, which differ between clients. --client NAME writes those of one client.")
