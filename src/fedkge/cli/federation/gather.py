"""`fedkge federation gather`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.cli.arguments import FederationFile, Json
from fedkge.cli.tables import print_json, print_line, say
from fedkge.deploy import gathering
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.site_settings import read_site

EXAMPLE = "Example: fedkge federation gather federation.toml north/site.toml south/site.toml"


def gather(
    federation: FederationFile,
    sites: Annotated[list[Path], typer.Argument(help="The site.toml of every site, with its run and graph beside it.")],
    out: Annotated[Path, typer.Option(help="New run directory.")] = Path("everything"),
    as_json: Json = False,
) -> None:
    """Join the runs of the server and all sites into one run.

    You can attack and audit the joined run. The person who makes it sees everything.
    """
    path = gathering.gather(read_federation(federation), [read_site(site) for site in sites], out)
    if as_json:
        print_json({"run": str(path)})
        return
    print_line(f"Run: {path}")
    say(f"Next: fedkge attack {path}, or fedkge report {path}")
