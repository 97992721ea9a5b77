"""What NVFlare starts in the server's job process: the controller, and how it carries messages.

The job holds nothing but the name of this class. What the federation is stands in federation.toml on this machine:
`FEDKGE_FEDERATION` names the file, or it lies in the `local` folder of NVFlare's workspace.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from fedkge.deploy.coordinator import Coordinator
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.liveness import Liveness
from fedkge.deploy.logs import log_of
from fedkge.deploy.nvflare_engine import Heard, NVFlareEngine, Stopped
from fedkge.deploy.nvflare_names import (
    CONTENT,
    KNOWN,
    NUMBER,
    PING,
    REPLY,
    REQUEST,
    SEAL,
    SERVER_FILE,
    SERVER_VARIABLE,
    TOKEN,
    VERDICT,
    settings_path,
    startup_folder,
)
from fedkge.deploy.processes import end_with_parent
from fedkge.deploy.request_keys import read_signing_key
from fedkge.deploy.request_numbers import NumberFile
from fedkge.deploy.signatures import Signer

LOG = log_of("fedkge.server")
PING_SECONDS = 5.0


class FlareCarrier:
    """Hands messages to the sites' job processes over NVFlare's auxiliary channel, which streams large ones."""

    def __init__(self, engine: Any, signal: Signal) -> None:
        self._engine, self._signal = engine, signal
        self._names = frozenset(client.name for client in engine.get_clients())
        self._lost: set[str] = set()

    def names(self) -> Sequence[str]:
        """The sites whose job process runs, sorted."""
        return sorted(self._names - self._lost)

    def lose(self, site: str) -> None:
        """Count a site as gone until the next job."""
        if site in self._names and site not in self._lost:
            LOG.warning("%s cannot be reached any more", site)
            self._lost.add(site)

    def doubt(self, site: str) -> None:
        """Count a site as gone unless it answers."""
        if site in self.names() and self.ping(site, 0) == "silent":
            self.lose(site)

    def deliver(self, site: str, seal: bytes, content: bytes, timeout_seconds: float) -> bool:
        """Hand a request over; whether the site has said that it has it."""
        return self._send(site, REQUEST, Shareable({SEAL: seal, CONTENT: content}), timeout_seconds) is not None

    def ping(self, site: str, number: int) -> Heard:
        """Whether the site's job process answers, and whether it has the request with this number."""
        reply = self._send(site, PING, Shareable({NUMBER: number}), PING_SECONDS)
        if reply is None:
            return "silent"
        return "known" if reply.get(KNOWN) is True else "unknown"

    def _send(self, site: str, topic: str, message: Shareable, timeout_seconds: float) -> Shareable | None:
        """Send a message; the site's reply, if it is a good one."""
        with self._engine.new_context() as context:
            replies = self._engine.send_aux_request(
                targets=[site],
                topic=topic,
                request=message,
                timeout=timeout_seconds,
                fl_ctx=context,
                optional=True,
            )
        reply = (replies or {}).get(site)
        return reply if reply is not None and reply.get_return_code() == ReturnCode.OK else None

    def stopped(self) -> bool:
        """Whether the job is to end."""
        return bool(self._signal.triggered)


class FederationController(Controller):  # type: ignore[misc] # NVFlare has no types
    """Runs the federation's rounds as an NVFlare workflow."""

    def __init__(self) -> None:
        super().__init__()
        self._carrier: FlareCarrier | None = None
        self._engine: NVFlareEngine | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Listen for answers before anything is asked."""
        end_with_parent()
        fl_ctx.get_engine().register_aux_message_handler(REPLY, self._receive)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """All rounds that are left."""
        path = settings_path(SERVER_VARIABLE, SERVER_FILE, fl_ctx)
        settings = read_federation(path)
        self._carrier = FlareCarrier(fl_ctx.get_engine(), abort_signal)
        key = read_signing_key(startup_folder(fl_ctx))
        signer = Signer(key, settings.name, str(fl_ctx.get_job_id()), NumberFile(settings.run).next)
        liveness = Liveness(settings.silence_seconds)
        self._engine = NVFlareEngine(self._carrier, signer, settings.wire, settings.largest_message, liveness)
        try:
            Coordinator(self._engine, settings).run()
        except Stopped:
            LOG.info("the job is stopped; everything up to the last whole round is saved")

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is left to stop."""

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Shareable, fl_ctx: FLContext
    ) -> None:
        """Tasks are not used; whatever comes as one is dropped."""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Hear of sites that are gone. The news may be that of a process which has a successor by now: so ask first."""
        if event_type == EventType.CLIENT_DISCONNECTED and self._carrier is not None:
            site = str(fl_ctx.get_prop(FLContextKey.DISCONNECTED_CLIENT_NAME))
            threading.Thread(target=self._carrier.doubt, args=(site,), daemon=True).start()

    def _receive(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:  # noqa: ARG002
        if self._engine is None:  # nothing was asked yet
            return make_reply(ReturnCode.SERVICE_UNAVAILABLE)
        reply = make_reply(ReturnCode.OK)
        reply[VERDICT] = self._engine.receive(request.get(TOKEN), request.get(CONTENT))
        return reply
