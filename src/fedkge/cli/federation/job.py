"""`fedkge federation job`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.cli.arguments import FederationFile, Json
from fedkge.cli.tables import print_json, print_line
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.provision import write_job

EXAMPLE = "Example: fedkge federation job federation.toml --out job"


def job(
    federation: FederationFile = Path("federation.toml"),
    out: Annotated[Path, typer.Option(help="Job folder to write.")] = Path("job"),
    as_json: Json = False,
) -> None:
    """Write the job folder for an NVFlare that runs already.

    The job holds two class names and no code.
    """
    settings = read_federation(federation)
    write_job(out, settings.name, settings.configuration.federation.least_clients)
    if as_json:
        print_json({"path": str(out)})
    else:
        print_line(f"{out}: submit it with NVFlare's own tools")
