"""What NVFlare starts in a site's job process: the executor, which hands requests to the `Member`.

The job says only which class to start. What the site allows stands in site.toml on its own machine: `FEDKGE_SITE`
names the file, or it lies in the `local` folder of NVFlare's workspace.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from fedkge.deploy.member import Member
from fedkge.deploy.nvflare_server import CONTENT, NUMBER, REPLY, REQUEST, VERDICT, settings_path
from fedkge.deploy.site_file import read_site

LOG = logging.getLogger("fedkge.site")
VARIABLE = "FEDKGE_SITE"
ANSWER_SECONDS = 600.0
RETRY_SECONDS = 1.0


class SiteExecutor(Executor):
    """Answers the server's requests, one after the other, in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self._known: set[str] = set()
        self._over = threading.Event()
        self._engine: Any = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Begin and end with the job."""
        if event_type == EventType.START_RUN:
            self._engine = fl_ctx.get_engine()
            site = Member(read_site(settings_path(VARIABLE, "site.toml", fl_ctx)), fl_ctx.get_identity_name())
            self._engine.register_aux_message_handler(REQUEST, self._accept)
            threading.Thread(target=self._work, args=(site,), daemon=True, name="fedkge").start()
        elif event_type in (EventType.ABOUT_TO_END_RUN, EventType.ABORT_TASK, EventType.END_RUN):
            self._over.set()
            self._requests.put(None)

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:  # noqa: ARG002
        """Tasks are not used: a fedkge server sends messages."""
        LOG.warning("refused the task %r: this site answers fedkge's messages only", task_name)
        return make_reply(ReturnCode.TASK_UNKNOWN)

    def _accept(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:  # noqa: ARG002
        number, content = request.get(NUMBER), request.get(CONTENT)
        if not isinstance(number, str) or not isinstance(content, bytes):
            LOG.warning("refused a request that is none")
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        if number not in self._known:  # the same request again, because the first receipt was lost
            self._known.add(number)
            self._requests.put((number, content))
        return make_reply(ReturnCode.OK)

    def _work(self, site: Member) -> None:
        with site:
            while (item := self._requests.get()) is not None:
                number, content = item
                self._answer(number, site.answer(content))

    def _answer(self, number: str, content: bytes) -> None:
        """Until the server has it or the job ends; an answer that nobody waits for any more is forgotten."""
        while not self._over.is_set():
            with self._engine.new_context() as context:
                replies = self._engine.send_aux_request(
                    targets=None,
                    topic=REPLY,
                    request=Shareable({NUMBER: number, CONTENT: content}),
                    timeout=ANSWER_SECONDS,
                    fl_ctx=context,
                    optional=True,
                )
            reply = next(iter((replies or {}).values()), None)
            if reply is not None and reply.get_return_code() == ReturnCode.OK:
                if reply.get(VERDICT) != "taken":
                    LOG.info("the server had no use for an answer: %s", reply.get(VERDICT))
                return
            self._over.wait(RETRY_SECONDS)
