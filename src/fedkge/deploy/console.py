"""The coordinator's own connection to NVFlare: who is connected, submit the job, has it ended."""

from __future__ import annotations

import contextlib
import io
import time
from pathlib import Path
from typing import Any

from fedkge.base.errors import UnavailableError
from fedkge.deploy.provision import COORDINATOR

CONNECT_SECONDS = 300.0
TRY_SECONDS = 10.0


class Console:
    """A session with NVFlare's server under the coordinator's certificate; it is opened again when it breaks."""

    def __init__(self, kit: Path) -> None:
        self._kit = kit
        self._session: Any = None

    def connected(self) -> list[str]:
        """The sites that are registered and send heartbeats, sorted."""
        return sorted(self.heard())

    def heard(self) -> dict[str, float]:
        """When each of them was last heard of: seconds since 1970, by this machine's clock."""
        info = self._ask(lambda session: session.get_system_info())
        return {client.name: float(client.last_connect_time or 0.0) for client in info.client_info}

    def submit(self, job: Path) -> str:
        """Submit the job in this folder; its number."""
        return str(self._ask(lambda session: session.submit_job(str(job.resolve()))))

    def ended(self, job: str) -> bool:
        """Whether the job has ended, well or not."""
        status = str(self._ask(lambda session: session.get_job_meta(job)).get("status", ""))
        return status.startswith("FINISHED") or status in ("FAILED_TO_RUN", "ABANDONED")

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            with contextlib.suppress(Exception), _quiet():
                self._session.close()
            self._session = None

    def _ask(self, question: Any) -> Any:
        ends = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                if self._session is None:
                    self._session = self._connect()
                with _quiet():
                    return question(self._session)
            except Exception as error:
                self.close()
                if time.monotonic() > ends:
                    raise UnavailableError(
                        f"NVFlare's server does not answer ({error!s:.200}); see nvflare.log"
                    ) from error
                time.sleep(0.5)

    def _connect(self) -> Any:
        from nvflare.fuel.flare_api.flare_api import new_secure_session  # noqa: PLC0415 (slow)

        with _quiet():
            return new_secure_session(COORDINATOR, str(self._kit), timeout=TRY_SECONDS)


def _quiet() -> contextlib.AbstractContextManager[Any]:
    """NVFlare prints to stdout, which belongs to results."""
    return contextlib.redirect_stdout(io.StringIO())
