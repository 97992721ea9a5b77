"""Messages between server and clients, and the protocol of an engine that carries them.

Messages are values. An engine moves messages and computes nothing; client and server compute and know no engine.
A failure is a message too, so a round can go on without the client that failed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.evaluation import Evaluation
from fedkge.runs.round import Rows, Shared

LARGEST_LOSS = 1e6
"""Training that works has no larger mean loss. In an average, a larger loss would hide the losses of other clients."""
MOST_TRIPLES = 10**12
MOST_ROUNDS = 10**9


@dataclass(frozen=True, slots=True)
class Invite:
    """Server to client: the version that it runs, and the terms of the federation as configuration keys and values.

    Only deployed sites are invited, and they check the terms. The embedded engine has one owner and needs no
    invitation.
    """

    version: str
    federation: str
    terms: Mapping[str, Any]
    numbers: str = "float32"
    """The number type of rows on the wire."""
    mark: str = ""
    """The end of this site's ledger as the server remembers it: the site refuses if its ledger lacks that line."""
    releases: int = 0


@dataclass(frozen=True, slots=True)
class Accept:
    """Client to server: it accepts the terms and runs this version. Sites with the same fingerprint have the same key
    and the same rules for names.
    """

    version: str
    fingerprint: str = ""
    aligned: bool = True
    """Whether it has pseudonyms for its names. If not, a joint alignment makes them before it can greet."""
    mark: str = ""
    """The end of a defended site's ledger, as in `Upload`. Its size and names are already paid for."""
    releases: int = 0


@dataclass(frozen=True, slots=True)
class Align:
    """Server to client: make joint pseudonyms among these sites. No origin: begin with your own list. Another site as
    origin: raise its points. Yourself as origin: your list has come back.
    """

    sites: tuple[str, ...]
    origin: str = ""
    raised_by: tuple[str, ...] = ()
    points: bytes = b""
    tag: bytes = b""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Client to server: a list for the next site; if its own list came back, only the pseudonym of the check name."""

    origin: str
    raised_by: tuple[str, ...] = ()
    points: bytes = b""
    tag: bytes = b""
    check: str = ""


@dataclass(frozen=True, slots=True)
class Hello:
    """Server to client: who are you, and what do you own?"""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Greeting:
    """Client to server: the names of the rows that it can share, in its own order, and its number of triples."""

    names: Mapping[Shared, Sequence[str]]
    widths: Mapping[Shared, int]
    triples: int
    tags: Mapping[Shared, NDArray[np.uint8]] = field(default_factory=dict)
    """For each name, a tag that proves ownership. Other clients can check a tag; the server cannot make one."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """Another client's proof that it owns some of this client's rows: their row numbers here, and a tag for each."""

    places: NDArray[np.int64]
    tags: NDArray[np.uint8]


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Server to client: share only the rows at these places of your list; too few other clients own the rest.

    `evidence` has the proofs of the other owners.
    """

    places: Mapping[Shared, NDArray[np.int64]]
    evidence: Mapping[str, Word] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Client to server: how many rows of each table it will share."""

    rows: Mapping[Shared, int]


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Server to client: train round `round` from these rows (the client's own, in its own order)."""

    round: int
    rows: Mapping[Shared, Rows]


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """Client to server: its shared rows after the round.

    Under a defence, `triples` is the public number, and the loss is missing because private triples determine it. A
    defended site adds the end of its ledger: the random number (`mark`) of the last line, and the number of releases.
    """

    round: int
    rows: Mapping[Shared, Rows]
    triples: int
    loss: float | None
    mark: str = ""
    releases: int = 0


@dataclass(frozen=True, slots=True)
class Goodbye:
    """Client to server: it leaves the federation, because its privacy budget is spent."""

    reason: str


@short_repr("split")
@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """Server to client: rank your held-out triples with these rows."""

    rows: Mapping[Shared, Rows]
    split: str


@short_repr()
@dataclass(frozen=True, slots=True)
class RankingMetrics:
    """Client to server: ranking metrics and how many triples they average over (0: nothing to rank)."""

    triples: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    controls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, evaluation: Evaluation) -> RankingMetrics:
        """The numbers of an evaluation, without its triples."""
        controls = {name: ranking.metrics() for name, ranking in evaluation.controls.items()}
        return cls(len(evaluation.ranking), evaluation.metrics(), controls)


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """Server to client: the federation ended with round `round`; these are your rows of the final tables."""

    round: int
    rows: Mapping[Shared, Rows]


@dataclass(frozen=True, slots=True)
class Kept:
    """Client to server: the final rows are on its disk."""

    round: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A client that could not answer, and why; `diverged` when its numbers are no longer finite."""

    client: str
    reason: str
    diverged: bool = False


Request: TypeAlias = Invite | Align | Hello | Share | Fit | Evaluate | Finish
Reply: TypeAlias = Accept | Aligned | Greeting | Sharing | Upload | Goodbye | RankingMetrics | Kept

NO_LIMIT = math.inf
"""The time-out of an engine that waits for all clients."""


class ClientLogic(Protocol):
    """Something that answers requests: a client or a site."""

    def handle(self, request: Request) -> Reply:
        """Answer one request."""
        ...


class Engine(Protocol):
    """Something that carries messages."""

    def clients(self) -> Sequence[str]:
        """The names of the clients that can be reached now, sorted."""
        ...

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = NO_LIMIT
    ) -> Mapping[str, Reply | Failure]:
        """Deliver each request and wait for the replies. A client that does not answer in time is a Failure."""
        ...


def payload_bytes(message: Any) -> int:
    """The size of the arrays that a message carries."""
    rows: Mapping[Shared, Rows] = getattr(message, "rows", {})
    return sum(table.nbytes for table in rows.values())
