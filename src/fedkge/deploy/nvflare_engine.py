"""The engine over NVFlare: it carries messages between the server's job process and the sites'.

A request is handed over and acknowledged at once; the answer comes as a message of the site's own when it is ready,
however long that takes. Each request has a random number that only its site was told, and an answer must carry it:
so an answer that is late, comes twice, or comes from another site is told apart and dropped.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedkge.deploy.logs import log_of
from fedkge.deploy.wire import LARGEST_MESSAGE, Numbers, WireError, as_reply, decode, encode
from fedkge.federation.messages import NO_LIMIT, Failure, Reply, Request

LOG = log_of("fedkge.server")
RETRY_SECONDS = 1.0
CHECK_SECONDS = 0.2
PING_SECONDS = 5.0
SILENCE_SECONDS = 120.0
"""A site that has not been heard of for so long is lost, though its time-out may be far away. Not too short: where
hundreds of megabytes are on their way over a slow line, a small question waits behind them."""
START_SECONDS = 60.0
"""So much longer at the beginning, while job processes start."""


class Carrier(Protocol):
    """What the engine needs of NVFlare's."""

    def names(self) -> Sequence[str]:
        """The sites whose job process runs, sorted."""
        ...

    def deliver(self, site: str, number: str, content: bytes, timeout_seconds: float) -> bool:
        """Hand a request over; whether the site has said that it has it."""
        ...

    def ping(self, site: str) -> bool:
        """Whether the site's job process answers."""
        ...

    def lose(self, site: str) -> None:
        """Count a site as gone until the next job."""
        ...

    def stopped(self) -> bool:
        """Whether the job is to end."""
        ...


class Stopped(Exception):  # noqa: N818 (no error: somebody stops the job)
    """The job is being ended from outside; everything that matters is on disk."""


@dataclass
class _Open:
    """A request that waits for its answer."""

    site: str
    content: bytes
    answer: Reply | Failure | None = None
    done: threading.Event = field(default_factory=threading.Event)


class NVFlareEngine:
    """Carries requests to sites and their answers back."""

    def __init__(
        self,
        carrier: Carrier,
        numbers: Numbers = "float32",
        largest: int = LARGEST_MESSAGE,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._carrier = carrier
        self._numbers: Numbers = numbers
        self._largest = largest
        self._silence_seconds = silence_seconds
        self._open: dict[str, _Open] = {}
        self._heard: dict[str, float] = {}
        self._lock = threading.Lock()
        self.refused: Callable[[str, str], None] = lambda _site, _reason: None
        """Called with a site and a reason when what it sent is refused."""

    def clients(self) -> Sequence[str]:
        """The names of the sites that can be reached now, sorted."""
        return tuple(sorted(self._carrier.names()))

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = NO_LIMIT
    ) -> Mapping[str, Reply | Failure]:
        """Deliver each request and wait for the answers, or for so long."""
        ends = time.monotonic() + timeout_seconds
        asked = {
            secrets.token_hex(16): _Open(site, encode(request, self._numbers)) for site, request in requests.items()
        }
        with self._lock:
            self._open |= asked
        try:
            for number, waiting in asked.items():
                threading.Thread(target=self._accompany, args=(number, waiting, ends), daemon=True).start()
            for waiting in asked.values():
                self._wait(waiting, ends)
        finally:
            with self._lock:
                for number in asked:
                    del self._open[number]
        return {
            waiting.site: waiting.answer or Failure(waiting.site, f"no answer within {timeout_seconds:g} seconds")
            for waiting in asked.values()
        }

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

    def _accompany(self, number: str, waiting: _Open, ends: float) -> None:
        """Deliver a request, trying again and again (the site recognises one that comes twice), and then see to it
        that the site is still there. One that has been silent for too long is lost, whatever the time-out.
        """
        site, delivered, heard = waiting.site, False, self._heard.get(waiting.site, time.monotonic() + START_SECONDS)
        while not waiting.done.is_set() and number in self._open and not self._carrier.stopped():
            left = ends - time.monotonic()
            if left <= 0:
                return
            if not delivered:
                answered = delivered = self._carrier.deliver(site, number, waiting.content, left)
            else:
                answered = self._carrier.ping(site)
            if answered:
                heard = self._heard[site] = time.monotonic()
            elif time.monotonic() - heard > self._silence_seconds:
                self._carrier.lose(site)
                return
            waiting.done.wait(PING_SECONDS if delivered else RETRY_SECONDS)

    def receive(self, number: Any, content: Any) -> str:
        """Take in an answer; returns "taken", or why not. Called by the carrier's threads."""
        with self._lock:
            waiting = self._open.get(number) if isinstance(number, str) else None
        if waiting is None:
            LOG.info("an answer that nobody waits for (any more) was dropped")
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
