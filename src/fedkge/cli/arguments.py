"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
RunPath: TypeAlias = Annotated[Path, typer.Argument(help="Run directory.")]
FederationFile: TypeAlias = Annotated[Path, typer.Argument(help="The federation.toml of the server.")]
SiteFile: TypeAlias = Annotated[Path, typer.Argument(help="The site.toml of this site.")]
GraphPath: TypeAlias = Annotated[str, typer.Argument(metavar="PATH", help="A file, a folder, or a data set by name.")]
DatasetName: TypeAlias = Annotated[str, typer.Argument(help="Name of a data set (see fedkge data list).")]
ColumnNames: TypeAlias = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="HEAD,RELATION,TAIL",
        help="CSV and Parquet: columns of head, relation and tail.",
    ),
]
SkipHeader: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--skip-header/--no-skip-header",
        help="TSV: skip the first line of each file, or read it as a triple. Without either, a header is an error.",
        show_default=False,
    ),
]
