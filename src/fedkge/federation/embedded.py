"""The embedded engine: all clients in this process, on all cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from fedkge.errors import FedkgeError, NumericalError
from fedkge.federation.messages import ClientLogic, Failure, Reply, Request


class EmbeddedEngine:
    """Carries messages by calling the clients, in parallel; kernels release the GIL.

    A client's own error becomes a Failure; a mistake in the program stops the program.
    """

    def __init__(self, clients: Mapping[str, ClientLogic], threads: int) -> None:
        self._clients = dict(sorted(clients.items()))
        self._threads = threads

    def clients(self) -> Sequence[str]:
        """The names of all clients, sorted."""
        return tuple(self._clients)

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply | Failure]:
        """Hand every client its request and wait for all answers."""
        with ThreadPoolExecutor(max_workers=self._threads) as pool:
            answers = {name: pool.submit(self._ask, name, request) for name, request in sorted(requests.items())}
            return {name: answer.result() for name, answer in answers.items()}

    def _ask(self, name: str, request: Request) -> Reply | Failure:
        try:
            return self._clients[name].handle(request)
        except FedkgeError as error:
            return Failure(name, str(error), isinstance(error, NumericalError))
