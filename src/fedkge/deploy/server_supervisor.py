"""`fedkge server`: runs NVFlare's server and submits one job after another until the federation has ended.

NVFlare ends a job when its server ends, and a lost site cannot rejoin a running job. So every job is the same: it
continues from the checkpoints with the connected sites. The supervisor submits a new job when the last one failed, when
the server was restarted, and, after a round, when a site is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedkge.base.errors import RunError
from fedkge.deploy.console import Console
from fedkge.deploy.coordinator import FAILED, REJOIN, REJOIN_FILE, handed_out, is_over
from fedkge.deploy.federation_file import FederationFile
from fedkge.deploy.liveness import Liveness
from fedkge.deploy.logs import LOG_CONFIGURATION, nvflare_logging
from fedkge.deploy.processes import SERVER_VARIABLE, Child, server_command
from fedkge.deploy.provision import (
    COORDINATOR_KIT,
    SERVER_KIT,
    server_resources,
    site_permissions,
    write_job,
    write_local,
)
from fedkge.deploy.request_keys import fingerprint, read_public_key, read_signing_key
from fedkge.deploy.status import FINISHED, Status, read_status
from fedkge.deploy.status_lines import StatusLines
from fedkge.federation.checkpoints import Checkpoint
from fedkge.runs.directory import RunDirectory
from fedkge.store.durable_files import write_atomically

POLL_SECONDS = 0.5
GATHER_SECONDS = 30.0
"""How long a server waits for missing sites before it continues, or ends, without them."""

MOST_FAILURES, FAILURE_SECONDS = 3, 2.0
"""This many jobs in a row may fail in the same round."""

LOG_FILE = "nvflare.log"


class ServerSupervisor:
    """Keeps NVFlare's server alive and one job running."""

    def __init__(self, path: Path, settings: FederationFile, tell: Callable[[str], None]) -> None:
        self._settings, self._tell = settings, tell
        kit = settings.kits / SERVER_KIT
        read_signing_key(kit / "startup")
        self._fingerprint = fingerprint(read_public_key(kit / "startup"))
        log = settings.run / LOG_FILE
        self._child = Child(server_command(kit, log, {SERVER_VARIABLE: str(path.resolve())}), tell)
        self._console = Console(settings.kits / COORDINATOR_KIT)
        self._checkpoint = Checkpoint(RunDirectory(settings.run).checkpoints)
        self._failures, self._failed_round = 0, -1
        self._missed: dict[str, float] = {}
        resources = server_resources(kit, Liveness(settings.silence_seconds))
        write_local(kit / "local", resources, site_permissions())
        write_atomically(kit / "local" / LOG_CONFIGURATION, nvflare_logging())
        write_job(settings.run / "job", settings.name, 1)

    def run(self) -> dict[str, Any]:
        """Run until the federation has ended; returns the last status."""
        settings = self._settings
        before = read_status(settings.run)
        narration = StatusLines(self._tell, before)
        self._tell(f"{settings.name}: listening on port {settings.port} for {', '.join(settings.sites)}")
        self._tell(f"requests are signed with the key {self._fingerprint}")
        try:
            self._child.watch()
            while handed_out(settings.run) < set(settings.sites):
                connected, have = set(self._gather(settings.run)), handed_out(settings.run)
                if is_over(settings.run) and connected <= have:
                    break  # the other sites get the model when the server is started again
                status = self._one_job(narration)
                if status.get("state") == FINISHED and handed_out(settings.run) == have:
                    break  # the connected sites do not accept the model
                self._count_failures(status)
            return read_status(settings.run)
        finally:
            self.stop()

    def _one_job(self, narration: StatusLines) -> dict[str, Any]:
        """Submit a job and wait until it ends; returns its last status."""
        Status(self._settings.run).write(state="starting", round=self._checkpoint.round)
        self._missed = {}
        job = self._console.submit(self._settings.run / "job")
        while True:
            self._child.watch()
            ended = self._console.ended(job)
            status = read_status(self._settings.run)
            narration.hear(status)
            if ended or status.get("state") in (FINISHED, FAILED):
                return status
            self._invite_back(status)
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """End NVFlare; everything up to the last complete round is on disk."""
        self._console.close()
        self._child.stop()

    def _gather(self, run: Path) -> list[str]:
        """Wait for all sites before the first round, later for a limited time; returns the connected sites."""
        began, seen = time.monotonic(), None
        first = not self._checkpoint.exists()
        least = 0 if is_over(run) else self._settings.configuration.federation.least_clients
        while True:
            self._child.watch()
            connected = [name for name in self._console.connected() if name in self._settings.sites]
            missing = sorted(set(self._settings.sites) - set(connected) - handed_out(run))
            if connected != seen:
                seen = connected
                waits = f"; waiting for {', '.join(missing)}" if missing else ""
                self._tell(f"connected: {', '.join(connected) or 'nobody'}{waits}")
            patient = not first and time.monotonic() - began > GATHER_SECONDS and len(connected) >= least
            if not missing or patient:
                return connected
            time.sleep(POLL_SECONDS)

    def _invite_back(self, status: dict[str, Any]) -> None:
        """If a lost site is connected again, end the job after this round; the next job includes the site.

        NVFlare lists a dead site for a while. So a site is back only if it was heard after it was found missing.
        A site that refused to take part in this job stays out until `fedkge server` is started again.
        """
        present = status.get("present")
        if status.get("state") != "training" or present is None:
            return
        here = {*present, *status.get("refused", [])}
        now = time.time()
        self._missed = {name: self._missed.get(name, now) for name in self._settings.sites if name not in here}
        if not self._missed:
            return
        heard = self._console.heard()
        back = [name for name, since in self._missed.items() if heard.get(name, 0.0) > since]
        mark = self._settings.run / REJOIN_FILE
        if back and not mark.exists():
            self._tell(f"{', '.join(back)} is back and joins after this round")
            mark.touch()

    def _count_failures(self, status: dict[str, Any]) -> None:
        """Count a failed job that did not get beyond the round of the last failure; too many are an error."""
        if status.get("state") in (FINISHED, REJOIN):
            return
        reached = self._checkpoint.round
        self._failures = self._failures + 1 if reached == self._failed_round else 1
        self._failed_round = reached
        if self._failures >= MOST_FAILURES:
            raise RunError(f"{self._failures} jobs failed in a row: {status.get('error', 'see nvflare.log')}")
        time.sleep(self._failures * FAILURE_SECONDS)
