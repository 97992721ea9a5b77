"""`fedkge federation signing-key`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.cli.arguments import Json
from fedkge.cli.tables import print_json, print_line
from fedkge.deploy.request_keys import PUBLIC_FILE, SIGNING_FILE, create_request_keys, fingerprint, read_public_key
from fedkge.store.durable_files import make_folder

EXAMPLE = "Example: fedkge federation signing-key keys"


def signing_key(
    folder: Annotated[Path, typer.Argument(help="Folder for both files.")] = Path(), as_json: Json = False
) -> None:
    """Make the key that signs the server's requests.

    You need this only for an NVFlare that runs already: fedkge federation init makes a key for its own kits. The
    secret file goes to the server's start-up folder and nowhere else.
    """
    make_folder(folder)
    create_request_keys(folder, ())
    print_of_key = fingerprint(read_public_key(folder))
    if as_json:
        paths = {"secret": str(folder / SIGNING_FILE), "public": str(folder / PUBLIC_FILE)}
        print_json({**paths, "fingerprint": print_of_key})
        return
    print_line(f"{folder / SIGNING_FILE}: for `startup` at the server alone")
    print_line(f"{folder / PUBLIC_FILE}: for `startup` at every site")
    print_line(f"Fingerprint: {print_of_key}")
