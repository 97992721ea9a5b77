"""`fedkge federation key`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.cli.arguments import Json
from fedkge.cli.tables import print_json, print_line
from fedkge.deploy.keys import create_key

EXAMPLE = "Example: fedkge federation key consortium.key"


def key(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("consortium.key"), as_json: Json = False
) -> None:
    """Make the consortium key, which turns entity names into pseudonyms.

    All sites share this key. The server must never have it.
    """
    create_key(path)
    if as_json:
        print_json({"path": str(path)})
    else:
        print_line(f"{path}: give it to the other sites, and to nobody else")
