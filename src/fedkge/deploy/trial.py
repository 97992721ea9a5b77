"""`fedkge federation try`: a whole federation on one machine, with one process per party."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.base.private_files import UMASK
from fedkge.deploy.gathering import PlantedCanaries, gather
from fedkge.deploy.layout import FEWEST_SITES, Layout, lay_out
from fedkge.deploy.site_settings import read_site
from fedkge.graph.split import Shards

COMMAND = "import sys; from fedkge.cli import main; sys.argv[0] = 'fedkge'; main()"
EVERYTHING = "everything"
POLL_SECONDS = 0.2


class Trial:
    """Writes all folders, starts the server and the sites, waits for them, and gathers their run directories."""

    def __init__(self, out: Path, clients: int, rounds: int, epsilon: float | None, seed: int) -> None:
        if clients < FEWEST_SITES:
            raise ConfigurationError(
                f"expected at least {FEWEST_SITES} sites, got {clients}: rows that only one site owns stay at home, so "
                "nothing would be shared; use --clients 2 or more, or `fedkge train` without a federation"
            )
        if out.exists() and any(out.iterdir()):
            raise RunError(f"{out}: expected a new or empty folder, got one in use; choose another --out")
        self._out, self._rounds, self._epsilon, self._seed = out, rounds, epsilon, seed
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def run(self, shards: Shards, canaries: PlantedCanaries | None, tell: Callable[[str], None]) -> dict[str, Any]:
        """Run the whole trial with one site per shard; returns the run directories by name."""
        layout = self._lay_out(shards)
        tell(f"certificates and settings are in {self._out}; starting a server and {len(shards)} sites")
        try:
            self._start("server", ["server", str(layout.federation)], tell)
            for name, path in layout.sites.items():
                self._start(name, ["client", str(path)], tell)
            failed = self._wait()
        finally:
            self.stop()
        if failed:
            raise RunError(f"ended with errors: {', '.join(f'{name} (code {code})' for name, code in failed.items())}")
        sites = {name: read_site(path) for name, path in layout.sites.items()}
        whole = gather(layout.settings, list(sites.values()), self._out / EVERYTHING, canaries)
        runs = {"server": str(layout.settings.run), **{name: str(site.run) for name, site in sites.items()}}
        return {"runs": {**runs, EVERYTHING: str(whole)}}

    def _wait(self) -> dict[str, int]:
        """Wait for all parties, or for the first failure: the others would wait for it. Returns failed exit codes."""
        while True:
            codes = {name: process.poll() for name, process in self._processes.items()}
            failed = {name: code for name, code in codes.items() if code}
            if failed or None not in codes.values():
                return failed
            time.sleep(POLL_SECONDS)

    def _lay_out(self, shards: Shards) -> Layout:
        privacy: dict[str, Any] = {"defence": "none"}
        training: dict[str, Any] = {"rounds": self._rounds, "dimension": 32, "seed": self._seed, "record": "all"}
        if self._epsilon is not None:
            privacy = {"defence": "recommended", "epsilon": self._epsilon}
            training |= privacy
        site = {"record": "all", "threads": 1}
        return lay_out(self._out, shards, training, privacy, site=site, federation={"round-seconds": 600})

    def _start(self, name: str, arguments: list[str], tell: Callable[[str], None]) -> None:
        process = subprocess.Popen(  # noqa: S603 (our own interpreter and code)
            [sys.executable, "-c", COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            umask=UMASK,
        )
        self._processes[name] = process
        threading.Thread(target=_repeat, args=(name, process.stderr, tell), daemon=True).start()

    def stop(self) -> None:
        """End every process that still runs."""
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()


def _repeat(name: str, lines: IO[str] | None, tell: Callable[[str], None]) -> None:
    for line in lines or ():
        tell(f"{name:>10} | {line.rstrip()}")
