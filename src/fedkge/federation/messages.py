"""What travels between server and clients, and the seam to whatever carries it.

Messages are values; an engine moves them and knows no mathematics, client and server compute and know no engine.
A failure is a value too, so that a round can go on without the client that failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.evaluation import Evaluation

Rows: TypeAlias = NDArray[np.float32]
Shared: TypeAlias = Literal["entities", "relations"]
"""Which table the clients share: entities in FedE, relations in FedR."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Server to client: who are you, and what do you own?"""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Client to server: the names of the rows that it would share, in its own order, and its number of triples."""

    names: Mapping[Shared, Sequence[str]]
    widths: Mapping[Shared, int]
    triples: int


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Server to client: train round `round` from these rows (the client's own, in its own order)."""

    round: int
    rows: Mapping[Shared, Rows]


@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """Client to server: its shared rows after the round.

    Under a defence `triples` is the public number, and there is no loss: it was computed from private triples.
    """

    round: int
    rows: Mapping[Shared, Rows]
    triples: int
    loss: float | None


@dataclass(frozen=True, slots=True)
class Goodbye:
    """Client to server: it takes part no longer, because its privacy budget is spent."""

    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """Server to client: rank your held-out triples with these rows."""

    rows: Mapping[Shared, Rows]
    split: str


@dataclass(frozen=True, slots=True)
class Scores:
    """Client to server: ranking metrics and how many triples they average over (0: nothing to rank)."""

    triples: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    controls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, evaluation: Evaluation) -> Scores:
        """The numbers of an evaluation, without its triples."""
        controls = {name: ranking.metrics() for name, ranking in evaluation.controls.items()}
        return cls(len(evaluation.ranking), evaluation.metrics(), controls)


@dataclass(frozen=True, slots=True)
class Failure:
    """A client that could not answer, and why; `diverged` when its numbers are no longer finite."""

    client: str
    reason: str
    diverged: bool = False


Request: TypeAlias = Hello | Fit | Evaluate
Reply: TypeAlias = Greeting | Upload | Goodbye | Scores


class ClientLogic(Protocol):
    """What a site does."""

    def handle(self, request: Request) -> Reply:
        """Answer one request."""
        ...


class Engine(Protocol):
    """What carries messages."""

    def clients(self) -> Sequence[str]:
        """The names of all clients, sorted."""
        ...

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply | Failure]:
        """Deliver each request and wait for the replies."""
        ...


def payload_bytes(message: Any) -> int:
    """The size of the arrays that a message carries."""
    rows: Mapping[Shared, Rows] = getattr(message, "rows", {})
    return sum(table.nbytes for table in rows.values())
