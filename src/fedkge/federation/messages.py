"""What travels between server and clients, and the seam to whatever carries it.

Messages are values; an engine moves them and knows no mathematics, client and server compute and know no engine.
A failure is a value too, so that a round can go on without the client that failed.
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
"""A mean loss beyond this is no loss of a training that works; averaged with others it would hide theirs."""
MOST_TRIPLES = 10**12
MOST_ROUNDS = 10**9


@dataclass(frozen=True, slots=True)
class Invite:
    """Server to client: the version that it runs, and the terms of the federation as configuration keys and values.

    Only sites on machines of their own are invited, and they judge the terms; the embedded engine has one owner.
    """

    version: str
    federation: str
    terms: Mapping[str, Any]
    numbers: str = "float32"
    """What rows travel as."""
    mark: str = ""
    """The end of this site's ledger as the server remembers it: the site refuses if its ledger lacks that line."""
    releases: int = 0


@dataclass(frozen=True, slots=True)
class Accept:
    """Client to server: it takes part on these terms, runs this version, and agrees with whoever has its fingerprint
    on how names are told apart.
    """

    version: str
    fingerprint: str = ""
    aligned: bool = True
    """Whether it has pseudonyms for its names; else they are made jointly, before it can greet."""
    mark: str = ""
    """Where a defended site's ledger ends, as in `Upload`: by then its size and names are paid for."""
    releases: int = 0


@dataclass(frozen=True, slots=True)
class Align:
    """Server to client: joint pseudonyms among these sites. Without an origin: begin with your own list; with another
    site's: raise its points; with your own: it has come back.
    """

    sites: tuple[str, ...]
    origin: str = ""
    raised_by: tuple[str, ...] = ()
    points: bytes = b""
    tag: bytes = b""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Client to server: a list for the next site; when its own has come back, the pseudonym of the check name alone."""

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
    """Client to server: the names of the rows that it would share, in its own order, and its number of triples."""

    names: Mapping[Shared, Sequence[str]]
    widths: Mapping[Shared, int]
    triples: int
    tags: Mapping[Shared, NDArray[np.uint8]] = field(default_factory=dict)
    """For each name the client's word, which other clients can check and the server cannot make, that it owns it."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """Another client's word that it owns some of this client's rows: their places here, and a tag for each."""

    places: NDArray[np.int64]
    tags: NDArray[np.uint8]


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Server to client: of the rows that you named, share those at these places alone; too few others own the rest.

    `evidence` are the words of the others who own them.
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

    Under a defence `triples` is the public number, and there is no loss: it was computed from private triples. A
    defended site adds where its ledger ends: the random number (`mark`) of the last line, and how many releases it has.
    """

    round: int
    rows: Mapping[Shared, Rows]
    triples: int
    loss: float | None
    mark: str = ""
    releases: int = 0


@dataclass(frozen=True, slots=True)
class Goodbye:
    """Client to server: it takes part no longer, because its privacy budget is spent."""

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
"""The time-out of an engine that waits for everybody."""


class ClientLogic(Protocol):
    """What a site does."""

    def handle(self, request: Request) -> Reply:
        """Answer one request."""
        ...


class Engine(Protocol):
    """What carries messages."""

    def clients(self) -> Sequence[str]:
        """The names of the clients that can be reached now, sorted."""
        ...

    def exchange(
        self, requests: Mapping[str, Request], *, timeout_seconds: float = NO_LIMIT
    ) -> Mapping[str, Reply | Failure]:
        """Deliver each request and wait for the replies; who has not answered in time is a Failure."""
        ...


def payload_bytes(message: Any) -> int:
    """The size of the arrays that a message carries."""
    rows: Mapping[Shared, Rows] = getattr(message, "rows", {})
    return sum(table.nbytes for table in rows.values())
