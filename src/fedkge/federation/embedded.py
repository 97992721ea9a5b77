"""The embedded engine: all clients in this process, on all cores."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from fedkge.base.errors import FedkgeError, NumericalError, PrivacyError
from fedkge.federation.messages import NO_LIMIT, ClientLogic, Failure, Reply, Request
from fedkge.store.durable_files import StorageError


class EmbeddedEngine:
    """Carries messages by calling the clients, in parallel; kernels release the GIL.

    An error of a client becomes a Failure; a bug stops the program. A client that is late is a Failure too: it finishes
    its work in the background and gets the next request only then.

    All clients share one disk and one ledger. If a file cannot be written, the run stops, and resuming it gives the
    same result. With `lose_clients`, the run continues without the client. A promise that cannot be kept always stops
    the run.

    >>> from fedkge.federation.messages import Hello, Sharing
    >>> class Quick:
    ...     def handle(self, request): return Sharing({})
    >>> EmbeddedEngine({"a": Quick()}, threads=1).exchange({"a": Hello()}, timeout_seconds=60)
    {'a': Sharing(rows={})}
    """

    def __init__(self, clients: Mapping[str, ClientLogic], threads: int, lose_clients: bool = False) -> None:
        self._lose_clients = lose_clients
        self._clients = dict(sorted(clients.items()))
        self._threads = threads
        self._turns = {name: threading.Lock() for name in self._clients}

    def clients(self) -> Sequence[str]:
        """The names of all clients, sorted."""
        return tuple(self._clients)

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = NO_LIMIT
    ) -> Mapping[str, Reply | Failure]:
        """Send every client its request and wait for all answers, at most until the time-out."""
        pool = ThreadPoolExecutor(max_workers=self._threads)
        ends = time.monotonic() + timeout_seconds
        try:
            answers = {name: pool.submit(self._ask, name, request) for name, request in sorted(requests.items())}
            return {name: _in_time(name, answer, ends, timeout_seconds) for name, answer in answers.items()}
        finally:
            pool.shutdown(wait=math.isinf(timeout_seconds), cancel_futures=True)

    def _ask(self, name: str, request: Request) -> Reply | Failure:
        try:
            with self._turns[name]:
                return self._clients[name].handle(request)
        except FedkgeError as error:
            if isinstance(error, PrivacyError) or (isinstance(error, StorageError) and not self._lose_clients):
                raise
            return Failure(name, str(error), isinstance(error, NumericalError))


def _in_time(name: str, answer: Future[Reply | Failure], ends: float, seconds: float) -> Reply | Failure:
    left = None if math.isinf(ends) else max(0.0, ends - time.monotonic())
    try:
        return answer.result(left)
    except TimeoutError:
        return Failure(name, f"no answer within {seconds:g} seconds")
