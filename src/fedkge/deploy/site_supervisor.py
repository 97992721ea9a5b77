"""`fedkge client`: keeps a site's NVFlare process alive and prints what the site does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedkge.base.errors import DataError
from fedkge.deploy.keys import read_key
from fedkge.deploy.kit import own_workspace
from fedkge.deploy.processes import SITE_VARIABLE, Child, site_command
from fedkge.deploy.site_settings import SiteSettings
from fedkge.deploy.status import FINISHED, HAS_MODEL, read_status
from fedkge.deploy.status_lines import StatusLines
from fedkge.graph.catalogue import DATASETS

POLL_SECONDS = 0.5
FAREWELL_SECONDS = 20.0
"""A site with the final model waits this long for the server to confirm it; the server may already be gone."""

RETURN_SECONDS = 300.0
"""The same for a site that had the model before a restart: the server may need some time to ask for it."""

LOG_FILE = "nvflare.log"


class SiteSupervisor:
    """A site's process that outlives jobs, servers and its own NVFlare. After a kill and a restart it continues."""

    def __init__(self, path: Path, settings: SiteSettings, tell: Callable[[str], None]) -> None:
        self._settings, self._tell = settings, tell
        self._log = settings.run / LOG_FILE
        variables = {SITE_VARIABLE: str(path.resolve())}
        workspace = own_workspace(settings.kit, settings.run, settings.name)
        self._child = Child(site_command(workspace, settings.name, self._log, variables), tell)

    def run(self) -> dict[str, Any]:
        """Take part until the federation has ended; returns the last status.

        Missing files are an error at once, before the server's invitation.
        """
        settings = self._settings
        read_key(settings.key)
        if settings.graph not in DATASETS and not Path(settings.graph).exists():
            raise DataError(f"{settings.graph}: no such file or folder (graph in site.toml)")
        before = read_status(settings.run)
        narration = StatusLines(self._tell, before)
        self._tell(f"{settings.name}: waiting for the server of {settings.federation}; NVFlare's log: {self._log}")
        leaves: float | None = None
        try:
            while True:
                self._child.watch()
                status = read_status(settings.run)
                narration.hear(status)
                state = status.get("state")
                if state != HAS_MODEL:
                    leaves = None
                elif leaves is None:
                    leaves = time.monotonic() + (FAREWELL_SECONDS if status != before else RETURN_SECONDS)
                if state == FINISHED or (leaves is not None and time.monotonic() > leaves):
                    return status
                time.sleep(POLL_SECONDS)
        finally:
            self.stop()

    def stop(self) -> None:
        """End NVFlare; the files on disk are complete at every moment."""
        self._child.stop()
