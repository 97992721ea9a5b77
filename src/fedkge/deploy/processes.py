"""NVFlare's processes as children of a fedkge command, which starts, watches, restarts and always ends them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fedkge.base.errors import RunError, UnavailableError
from fedkge.base.private_files import UMASK, open_private
from fedkge.deploy.liveness import HEARTBEAT_SECONDS
from fedkge.store.durable_files import make_folder

SERVER_VARIABLE, SITE_VARIABLE = "FEDKGE_FEDERATION", "FEDKGE_SITE"
"""A job process finds the settings of its own machine through these environment variables."""

SERVER_MODULE = "nvflare.private.fed.app.server.server_train"
SITE_MODULE = "nvflare.private.fed.app.client.client_train"
STOP_SECONDS = 10.0
SHORT_LIFE_SECONDS = 20.0
MOST_SHORT_LIVES = 5
PARENT_SECONDS = 0.5
_SET_PARENT_DEATH_SIGNAL = 1


@dataclass(frozen=True, slots=True)
class Command:
    """One of NVFlare's programs: what is started, with which kit, and where it writes its log."""

    module: str
    arguments: Sequence[str]
    kit: Path
    log: Path
    variables: Mapping[str, str]


def server_command(kit: Path, log: Path, variables: Mapping[str, str]) -> Command:
    """NVFlare's server with this kit."""
    arguments = ["-s", "fed_server.json", "--set", "secure_train=true", "org=coordinator", "config_folder=config"]
    return Command(SERVER_MODULE, arguments, kit, log, variables)


def site_command(kit: Path, site: str, log: Path, variables: Mapping[str, str]) -> Command:
    """NVFlare's client with this kit."""
    who = [f"uid={site}", f"org={site.replace('-', '_')}", f"heart_beat_interval={HEARTBEAT_SECONDS:g}"]
    arguments = ["-s", "fed_client.json", "--set", "secure_train=true", *who, "config_folder=config"]
    return Command(SITE_MODULE, arguments, kit, log, variables)


class Child:
    """A process that is restarted whenever it ends, until `stop`. It also ends when this process ends in any way."""

    def __init__(self, command: Command, tell: Callable[[str], None]) -> None:
        self._command, self._tell = command, tell
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._began = 0.0
        self._short_lives = 0

    def watch(self) -> None:
        """Start the process if it does not run; repeated early ends are an error."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            short = time.monotonic() - self._began < SHORT_LIFE_SECONDS
            self._short_lives = self._short_lives + 1 if short else 1
            if self._short_lives >= MOST_SHORT_LIVES:
                raise RunError(f"NVFlare ended {self._short_lives} times in a row; {self._command.log} says why")
            self._tell(f"NVFlare ended with code {self._process.returncode}; it is started again")
            time.sleep(min(5.0, float(self._short_lives)))
        self._start()

    def _start(self) -> None:
        command = self._command
        if not (command.kit / "startup").is_dir():
            raise UnavailableError(f"{command.kit}: expected a start-up kit (a folder with `startup` in it); unpack it")
        make_folder(command.log.parent)
        self._close_log()
        self._log = open(command.log, "ab", opener=open_private)  # noqa: SIM115 (closed with the process)
        self._began = time.monotonic()
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and NVFlare's module)
            [sys.executable, "-u", "-m", command.module, "-m", str(command.kit), *command.arguments],
            cwd=command.kit,
            env={
                **os.environ,
                "PYTHONSAFEPATH": "1",
                **command.variables,
            },  # imports nothing from the folder it runs in
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            preexec_fn=_killed_with_parent,  # noqa: PLW1509 (no other thread is forking)
            start_new_session=True,
            umask=UMASK,  # whatever NVFlare and its job processes write is for this user only
        )

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def stop(self) -> None:
        """End the process and whatever it started."""
        process = self._process
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(STOP_SECONDS)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        _end_group(process.pid)
        self._close_log()
        self._process = None


def _end_group(number: int) -> None:
    try:
        os.killpg(number, signal.SIGKILL)  # job processes that outlived their parent
    except (ProcessLookupError, PermissionError):
        return


def _killed_with_parent() -> None:
    """On Linux the kernel ends a child whose parent was killed; elsewhere NVFlare's own stop script does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, whatever it is doing.

    For job processes: NVFlare's own watch considers a killed parent alive while it is a zombie (as in a container
    without an init). The job would then continue for a site that was switched off.
    """
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True, name="fedkge-parent").start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)
