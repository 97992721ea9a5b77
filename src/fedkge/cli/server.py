"""`fedkge server`."""

from __future__ import annotations

from pathlib import Path

from fedkge.cli.arguments import FederationFile, Json
from fedkge.cli.errors import stops_at_once
from fedkge.cli.federation.ended import show_end
from fedkge.cli.tables import say
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.server_supervisor import ServerSupervisor

EXAMPLE = "Example: fedkge server federation.toml"


def server(federation: FederationFile = Path("federation.toml"), as_json: Json = False) -> None:
    """Run the server of a federation until its last round.

    If the server was stopped, start it again: it continues where it was.
    """
    settings = read_federation(federation)
    supervisor = ServerSupervisor(federation, settings, say)
    with stops_at_once(f"continue with: fedkge server {federation}", supervisor.stop):
        status = supervisor.run()
    show_end(status, settings.run, as_json)
