"""`fedkge client`."""

from __future__ import annotations

from pathlib import Path

from fedkge.cli.arguments import Json, SiteFile
from fedkge.cli.errors import stops_at_once
from fedkge.cli.federation.ended import show_end
from fedkge.cli.tables import say
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.site_supervisor import SiteSupervisor

EXAMPLE = "Example: fedkge client site.toml"


def client(site: SiteFile = Path("site.toml"), as_json: Json = False) -> None:
    """Take part in a federation with this site's own graph and budget.

    If the client was stopped, start it again: it continues where it was.
    """
    settings = read_site(site)
    supervisor = SiteSupervisor(site, settings, say)
    with stops_at_once(f"continue with: fedkge client {site}", supervisor.stop):
        status = supervisor.run()
    show_end(status, settings.run, as_json)
