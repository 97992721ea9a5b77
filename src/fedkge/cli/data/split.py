"""`fedkge data split`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedkge.cli.arguments import ColumnNames, GraphPath, Json, SkipHeader
from fedkge.cli.shard_table import shard_table
from fedkge.cli.tables import print_json, print_line, say, stdout
from fedkge.graph.datasets import load
from fedkge.graph.readers import parse_columns
from fedkge.graph.shards_on_disk import save_shards
from fedkge.graph.split import split as cut

EXAMPLE = "Example: fedkge data split codex-s --clients 3 --by entity --out shards/"


def split(
    path: GraphPath,
    clients: Annotated[int, typer.Option(min=1, help="Number of shards.")] = 3,
    by: Annotated[
        str, typer.Option(metavar="entity|relation|triple", help="What is divided among the clients.")
    ] = "entity",
    overlap: Annotated[
        float | None,
        typer.Option(help="Share of the other clients' entities that each client also gets.", show_default="0.25"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed. The same seed gives the same shards.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder to write. Without it, only the summary is shown.")] = None,
    columns: ColumnNames = "",
    skip_header: SkipHeader = None,
    as_json: Json = False,
) -> None:
    """Split a graph into client shards and show what they share.

    Train on the shards with fedkge train --data FOLDER.
    """
    shards = cut(load(path, columns=parse_columns(columns), skip_header=skip_header), clients, by, seed, overlap)
    if out is not None:
        save_shards(shards, out)
    if as_json:
        print_json({**asdict(shards.summary), "folder": str(out) if out else None})
        return
    console = stdout()
    console.print(shard_table(shards.summary, console.width))
    if out is not None:
        print_line(f"Shards: {out}")
        say(f"Next: fedkge train --data {out}")
