"""`fedkge federation init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.cli.arguments import Json
from fedkge.cli.tables import print_json, print_line, say
from fedkge.deploy.layout import initialise
from fedkge.deploy.provision import SERVER_KIT
from fedkge.deploy.request_keys import fingerprint, read_public_key

EXAMPLE = "Example: fedkge federation init --server kge.example.org --site north --site south"


def init(
    folder: Annotated[Path, typer.Argument(help="Folder for federation.toml and the start-up kits.")] = Path(),
    site: Annotated[list[str] | None, typer.Option("--site", help="Name of a site. Repeat it for each site.")] = None,
    server: Annotated[str, typer.Option(help="Host name under which the sites reach the server.")] = "localhost",
    port: Annotated[int, typer.Option(help="Port of the server.")] = 8002,
    name: Annotated[str, typer.Option(help="Name of the federation.")] = "study",
    rounds: Annotated[int, typer.Option(help="Number of communication rounds.")] = 20,
    as_json: Json = False,
) -> None:
    """Write federation.toml and the start-up kits.

    federation.toml is for the server and has comments. If the folder holds one already, fedkge uses it unchanged and
    makes only the kits. There is one kit for the server and one for each site.
    """
    training = {"model": "transe", "defence": "recommended", "epsilon": 8.0, "rounds": rounds}
    layout = initialise(folder, name, server, port, site or [], training)
    server_key = fingerprint(read_public_key(layout.settings.kits / SERVER_KIT / "startup"))
    if as_json:
        sites = {name: str(path) for name, path in layout.sites.items()}
        print_json({"federation": str(layout.federation), "sites": sites, "requests": server_key})
        return
    print_line(f"Settings of the server: {layout.federation}")
    for one, path in layout.sites.items():
        print_line(f"For {one}: {path.parent} (start-up kit and site.toml)")
    say("Send each site its folder, which holds its private key, by a way that you trust. Send a copy of the settings.")
    say(f"Your requests are signed with the key {server_key}. Tell each site by telephone: fedkge federation check")
    say("One site makes the consortium key (fedkge federation key) and gives it to the others, never to the server.")
    say(f"Next: fedkge server {layout.federation}, and at each site: fedkge client site.toml")
