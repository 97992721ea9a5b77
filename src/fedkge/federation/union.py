"""The union of all clients' names, and which of them have enough owners to be shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import RunError
from fedkge.base.short_repr import short_repr
from fedkge.federation.claimed_weights import Index
from fedkge.federation.messages import Greeting, Word
from fedkge.runs.round import Shared


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One table's rows.

    names   the shared names and their rows
    owners  for each client the rows of its shared names, in its order
    places  for each client which of its names are shared, as places in its own list
    """

    names: Mapping[str, int]
    owners: Mapping[str, Index]
    places: Mapping[str, Index]


def unite(greetings: Mapping[str, Greeting], kind: Shared, minimum_owners: int = 1) -> Union:
    """The rows of all clients, in the order of the first client's names, then the second's new ones, and so on.

    A federation of one keeps its client's order. A name with fewer owners than `minimum_owners` gets no row.

    >>> greetings = {
    ...     "a": Greeting({"entities": ("x", "y")}, {"entities": 2}, 1),
    ...     "b": Greeting({"entities": ("z", "y")}, {"entities": 2}, 1),
    ... }
    >>> dict(unite(greetings, "entities").names), dict(unite(greetings, "entities", 2).names)
    ({'x': 0, 'y': 1, 'z': 2}, {'y': 0})
    """
    union: dict[str, int] = {}
    owners = {
        name: np.array([union.setdefault(row, len(union)) for row in greeting.names[kind]], dtype=np.int64)
        for name, greeting in sorted(greetings.items())
    }
    counts = np.zeros(len(union), np.int64)
    for rows in owners.values():
        counts[rows] += 1
    enough = counts >= minimum_owners
    if not enough.any():
        raise RunError(f"no {kind} have {minimum_owners} owners, so there is nothing to share: are the names the same?")
    number = np.cumsum(enough) - 1
    places = {name: np.flatnonzero(enough[rows]).astype(np.int64) for name, rows in owners.items()}
    return Union(
        {row: int(number[place]) for row, place in union.items() if enough[place]},
        {name: number[rows[places[name]]].astype(np.int64) for name, rows in owners.items()},
        places,
    )


def evidence(greetings: Mapping[str, Greeting], client: str, kind: Shared = "entities") -> dict[str, Word]:
    """The proof for a client of who else owns its rows: the other owners' tags of those rows."""
    own = {name: place for place, name in enumerate(greetings[client].names[kind])}
    found: dict[str, Word] = {}
    for other, greeting in sorted(greetings.items()):
        tags = greeting.tags.get(kind)
        if other == client or tags is None:
            continue
        theirs = [place for place, name in enumerate(greeting.names[kind]) if name in own]
        mine: NDArray[np.int64] = np.array([own[greeting.names[kind][place]] for place in theirs], dtype=np.int64)
        found[other] = Word(mine, np.ascontiguousarray(tags[np.array(theirs, dtype=np.int64)]))
    return found
