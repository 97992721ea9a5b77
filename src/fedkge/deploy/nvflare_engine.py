"""The engine over NVFlare: it carries messages between the server's job process and the sites'.

The server signs and delivers a request, and the site acknowledges it at once. The site sends the answer as a separate
message when it is ready. Each request has a random token that only its site knows, and the answer must carry it. So the
engine recognises and drops an answer that is late, repeated or from another sender.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fedkge.deploy.liveness import Liveness, delivery_seconds
from fedkge.deploy.logs import log_of
from fedkge.deploy.wire import LARGEST_MESSAGE, Numbers, WireError, as_reply, decode, encode
from fedkge.federation.messages import NO_LIMIT, Failure, Reply, Request

LOG = log_of("fedkge.server")
RETRY_SECONDS = 1.0
CHECK_SECONDS = 0.2
TOKEN_BYTES = 16
DROPPED_SAY_EVERY = 1000
"""The log has one line per this many dropped answers: any sender could cause more."""

Heard = Literal["silent", "known", "unknown"]
"""What a ping found: no answer, a site that has the request, or a site that does not have it."""


class Carrier(Protocol):
    """The operations of NVFlare that the engine needs."""

    def names(self) -> Sequence[str]:
        """The sites whose job process runs, sorted."""
        ...

    def deliver(self, site: str, seal: bytes, content: bytes, timeout_seconds: float) -> bool:
        """Hand a request over; whether the site has said that it has it."""
        ...

    def ping(self, site: str, number: int) -> Heard:
        """Whether the site's job process answers, and whether it has the request with this number."""
        ...

    def lose(self, site: str) -> None:
        """Count a site as gone until the next job."""
        ...

    def stopped(self) -> bool:
        """Whether the job is to end."""
        ...


class Sealer(Protocol):
    """Signs requests."""

    def seal(self, site: str, token: bytes, content: bytes) -> tuple[int, bytes]:
        """A new number and the seal of a request to a site."""
        ...


class Stopped(Exception):  # noqa: N818 (no error: somebody stops the job)
    """The job is being ended from outside; everything that matters is on disk."""


@dataclass
class _Open:
    """A request that waits for its answer."""

    site: str
    token: bytes
    content: bytes
    number: int
    seal: bytes
    acknowledged: bool = False
    answer: Reply | Failure | None = None
    done: threading.Event = field(default_factory=threading.Event)


class NVFlareEngine:
    """Carries requests to sites and their answers back."""

    def __init__(
        self,
        carrier: Carrier,
        sealer: Sealer,
        numbers: Numbers = "float32",
        largest: int = LARGEST_MESSAGE,
        liveness: Liveness | None = None,
    ) -> None:
        self._carrier, self._sealer = carrier, sealer
        self._numbers: Numbers = numbers
        self._largest = largest
        self._liveness = liveness or Liveness()
        self._open: dict[str, _Open] = {}
        self._heard: dict[str, float] = {}
        self._lock = threading.Lock()
        self._dropped = 0
        self.refused: Callable[[str, str], None] = lambda _site, _reason: None
        """Called with a site and a reason when the engine refuses its message."""

    def clients(self) -> Sequence[str]:
        """The names of the sites that can be reached now, sorted."""
        return tuple(sorted(self._carrier.names()))

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = NO_LIMIT
    ) -> Mapping[str, Reply | Failure]:
        """Deliver each request and wait for the answers, at most `timeout_seconds`."""
        ends = time.monotonic() + timeout_seconds
        opened = [self._sealed(site, encode(request, self._numbers)) for site, request in requests.items()]
        asked = {waiting.token.hex(): waiting for waiting in opened}
        with self._lock:
            self._open |= asked
        try:
            for waiting in opened:
                for task in (self._deliver, self._watch):
                    threading.Thread(target=self._tried, args=(task, waiting, ends), daemon=True).start()
            for waiting in opened:
                self._wait(waiting, ends)
        finally:
            with self._lock:
                for token in asked:
                    del self._open[token]
        return {
            waiting.site: waiting.answer or Failure(waiting.site, f"no answer within {timeout_seconds:g} seconds")
            for waiting in opened
        }

    def _sealed(self, site: str, content: bytes) -> _Open:
        token = secrets.token_bytes(TOKEN_BYTES)
        return _Open(site, token, content, *self._sealer.seal(site, token, content))

    def _wait(self, waiting: _Open, ends: float) -> None:
        while not waiting.done.is_set():
            left = ends - time.monotonic()
            if left <= 0:
                return
            if self._carrier.stopped():
                raise Stopped
            if waiting.site not in self._carrier.names():
                waiting.answer = Failure(waiting.site, "it cannot be reached any more")
                return
            waiting.done.wait(min(CHECK_SECONDS, left))

    def _tried(self, task: Callable[[_Open, float], None], waiting: _Open, ends: float) -> None:
        """Run a thread's task. Report any exception at once: no other thread would deliver or watch the request."""
        try:
            task(waiting, ends)
        except Exception as error:
            LOG.exception("the request to %s cannot be carried on", waiting.site)
            waiting.answer = waiting.answer or Failure(waiting.site, f"not asked: {type(error).__name__} at the server")
            waiting.done.set()

    def _goes_on(self, waiting: _Open, ends: float) -> bool:
        """Whether the server still waits for the answer."""
        is_open = waiting.token.hex() in self._open and not waiting.done.is_set()
        return is_open and time.monotonic() < ends and not self._carrier.stopped()

    def _deliver(self, waiting: _Open, ends: float) -> None:
        """Deliver a request repeatedly until the site has it; the site recognises a repeated request."""
        while self._goes_on(waiting, ends):
            if not waiting.acknowledged:
                seconds = min(ends - time.monotonic(), delivery_seconds(len(waiting.content)))
                seal = waiting.seal
                if seconds > 0 and self._carrier.deliver(waiting.site, seal, waiting.content, seconds):
                    self._heard[waiting.site] = time.monotonic()
                    waiting.acknowledged = seal == waiting.seal
            waiting.done.wait(RETRY_SECONDS)

    def _watch(self, waiting: _Open, ends: float) -> None:
        """Check that the site is connected and has the request. A site that is silent for too long is lost, even before
        the time limit. If it acknowledged a request but does not have it, the request is signed and delivered again.
        """
        site, liveness = waiting.site, self._liveness
        since = time.monotonic() + (0.0 if site in self._heard else liveness.start_seconds)
        while self._goes_on(waiting, ends):
            if waiting.done.wait(min(liveness.ping_seconds, max(0.0, ends - time.monotonic()))):
                return
            acknowledged = waiting.acknowledged
            found = self._carrier.ping(site, waiting.number)
            now = time.monotonic()
            if found != "silent":
                self._heard[site] = now
            since = max(since, self._heard.get(site, since))
            if now - since > liveness.allowed(0 if waiting.acknowledged else len(waiting.content)):
                self._carrier.lose(site)
                return
            if found == "unknown" and acknowledged and self._goes_on(waiting, ends):
                LOG.warning("%s acknowledged a request and does not have it; it is sent again", site)
                waiting.number, waiting.seal = self._sealer.seal(site, waiting.token, waiting.content)
                waiting.acknowledged = False

    def receive(self, token: Any, content: Any) -> str:
        """Take in an answer; returns "taken", or why not. Called by the carrier's threads."""
        with self._lock:
            waiting = self._open.get(token) if isinstance(token, str) else None
            self._dropped += waiting is None
        if waiting is None:
            if self._dropped % DROPPED_SAY_EVERY == 1:
                LOG.info("%d answers that nobody waits for (any more) were dropped", self._dropped)
            return "nobody waits for this answer"
        if waiting.done.is_set():
            return "taken"
        waiting.answer = self._judge(waiting.site, content)
        waiting.done.set()
        return "taken"

    def _judge(self, site: str, content: Any) -> Reply | Failure:
        try:
            if not isinstance(content, bytes):
                raise WireError(f"expected bytes, got {type(content).__name__}")
            answer = as_reply(decode(content, self._largest))
        except WireError as error:
            LOG.warning("%s: what it sent is refused: %s", site, error)
            self.refused(site, str(error))
            return Failure(site, f"sent a message that is refused: {error}")
        if isinstance(answer, Failure):
            return Failure(site, answer.reason, answer.diverged)  # a site speaks for itself alone
        return answer
