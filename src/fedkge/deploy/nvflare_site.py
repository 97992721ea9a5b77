"""What NVFlare starts in a site's job process: the executor, which hands the server's requests to the `Member`.

Anybody in NVFlare's net can send to this process; the `Inbox` drops whatever the server did not sign for it. All that
is dropped gets the same reply, so the reply tells a forger nothing.

The job says only which class to start. What the site allows stands in site.toml on its own machine: `FEDKGE_SITE`
names the file, or it lies in the `local` folder of NVFlare's workspace.
"""

from __future__ import annotations

import threading
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from fedkge.base.errors import ConfigurationError
from fedkge.deploy.inbox import Inbox
from fedkge.deploy.logs import log_of
from fedkge.deploy.member import Member
from fedkge.deploy.nvflare_names import (
    CONTENT,
    KNOWN,
    NUMBER,
    PING,
    REPLY,
    REQUEST,
    SEAL,
    SITE_FILE,
    SITE_VARIABLE,
    TAKEN,
    TOKEN,
    VERDICT,
    settings_path,
    startup_folder,
)
from fedkge.deploy.processes import end_with_parent
from fedkge.deploy.request_keys import read_public_key
from fedkge.deploy.request_numbers import NumberFile
from fedkge.deploy.signatures import Address, Verifier
from fedkge.deploy.site_settings import read_site

LOG = log_of("fedkge.site")
ANSWER_SECONDS = 600.0
RETRY_SECONDS = 1.0


class SiteExecutor(Executor):  # type: ignore[misc] # NVFlare has no types
    """Answers the server's requests, one after the other, in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._inbox: Inbox | None = None
        self._over = threading.Event()
        self._engine: Any = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Begin and end with the job."""
        if event_type == EventType.START_RUN:
            end_with_parent()
            self._engine = fl_ctx.get_engine()
            settings = read_site(settings_path(SITE_VARIABLE, SITE_FILE, fl_ctx))
            certified = fl_ctx.get_identity_name()
            if settings.name != certified:
                raise ConfigurationError(f"site.toml is that of {settings.name!r}, the certificate of {certified!r}")
            address = Address(settings.federation, settings.name, str(fl_ctx.get_job_id()))
            verifier = Verifier(read_public_key(startup_folder(fl_ctx)), address)
            inbox = self._inbox = Inbox(verifier, NumberFile(settings.run))
            threading.Thread(target=self._work, args=(inbox, Member(settings)), daemon=True, name="fedkge").start()
            self._engine.register_aux_message_handler(REQUEST, self._accept)
            self._engine.register_aux_message_handler(PING, self._pong)
        elif event_type in (EventType.ABOUT_TO_END_RUN, EventType.END_RUN):
            self._over.set()
            if self._inbox is not None:
                self._inbox.close()

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:  # noqa: ARG002
        """Tasks are not used: a fedkge server sends messages."""
        LOG.warning("refused the task %r: this site answers fedkge's messages only", task_name)
        return make_reply(ReturnCode.TASK_UNKNOWN)

    def _accept(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:  # noqa: ARG002
        taken = self._inbox is not None and self._inbox.accept(request.get(SEAL), request.get(CONTENT))
        return make_reply(ReturnCode.OK if taken else ReturnCode.BAD_REQUEST_DATA)

    def _pong(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:  # noqa: ARG002
        reply = make_reply(ReturnCode.OK)
        reply[KNOWN] = self._inbox is not None and self._inbox.knows(request.get(NUMBER))
        return reply

    def _work(self, inbox: Inbox, member: Member) -> None:
        with member:
            while (request := inbox.take()) is not None:
                if self._answer(request.token, member.answer(request.content)):
                    member.answered()

    def _answer(self, token: str, content: bytes) -> bool:
        """Try until the server has it or the job ends; whether the server took it."""
        while not self._over.is_set():
            with self._engine.new_context() as context:
                replies = self._engine.send_aux_request(
                    targets=None,
                    topic=REPLY,
                    request=Shareable({TOKEN: token, CONTENT: content}),
                    timeout=ANSWER_SECONDS,
                    fl_ctx=context,
                    optional=True,
                )
            reply = next(iter((replies or {}).values()), None)
            if reply is not None and reply.get_return_code() == ReturnCode.OK:
                if reply.get(VERDICT) != TAKEN:  # late, or the server has forgotten the question
                    LOG.info("the server had no use for an answer: %s", reply.get(VERDICT))
                return bool(reply.get(VERDICT) == TAKEN)
            self._over.wait(RETRY_SECONDS)
        return False
