"""A site's inbox: only requests that the server signed for it, each once, in order, and never many at a time."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable

from fedkge.deploy.logs import log_of
from fedkge.deploy.request_numbers import NumberFile
from fedkge.deploy.signatures import Opened, Refusal, Verifier

LOG = log_of("fedkge.site")
MOST_WAITING = 2
"""Genuine requests that may wait while the site works on one. The server sends a second request only after it stopped
waiting for the first. So older waiting requests are obsolete and would only use memory."""

SAY_SECONDS = 60.0


class Refusals:
    """Counts what was dropped, and says so in the log: at once, and then at most once a minute for each reason."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._said: dict[Refusal, float] = {}
        self.counts: Counter[Refusal] = Counter()

    def note(self, refusal: Refusal) -> None:
        """Count one more."""
        with self._lock:
            self.counts[refusal] += 1
            now = self._clock()
            if now - self._said.get(refusal, -SAY_SECONDS) < SAY_SECONDS:
                return
            self._said[refusal] = now
            count = self.counts[refusal]
        LOG.warning("dropped %d requests in this job: %s", count, refusal.value)


class Inbox:
    """Receives messages from any sender, and returns only the server's requests."""

    def __init__(self, verifier: Verifier, numbers: NumberFile) -> None:
        self._verifier, self._numbers = verifier, numbers
        self._lock = threading.Lock()
        self._waiting: queue.Queue[Opened | None] = queue.Queue()
        self._last = 0
        self.refusals = Refusals()

    def accept(self, seal: object, content: object) -> bool:
        """Receive a request; returns whether to acknowledge it to the sender. Called by NVFlare's threads."""
        opened = self._verifier.open(seal, content)
        refusal = opened if isinstance(opened, Refusal) else self._admit(opened)
        if refusal is not None:
            self.refusals.note(refusal)
        return refusal is None

    def _admit(self, opened: Opened) -> Refusal | None:
        with self._lock:
            if opened.number == self._last:  # the same again, because the first receipt was lost
                return None
            if self._waiting.qsize() >= MOST_WAITING:
                return Refusal.CROWDED
            if not self._numbers.admit(opened.number):
                return Refusal.REPLAYED
            self._last = opened.number
            self._waiting.put(opened)
            return None

    def knows(self, number: object) -> bool:
        """Whether the last request that this process took in has this number."""
        return isinstance(number, int) and number == self._last

    def take(self) -> Opened | None:
        """Wait for the next request; None when the job is over."""
        return self._waiting.get()

    def close(self) -> None:
        """The job is over."""
        self._waiting.put(None)
