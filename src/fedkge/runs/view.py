"""What one adversary saw of a federation, and nothing else: the only input of an attack.

Entities and relations are numbered as in the run's `entities.txt` and `relations.txt`. A table that the adversary knows
only in part has NaN in the rows that it does not know. A score that uses such a row is NaN, which makes the mistake
visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.graph import Triples
from fedkge.models.scorer import Scorer
from fedkge.models.tables import Table
from fedkge.runs.round import Round, Rows

Adversary: TypeAlias = Literal["server", "client", "collusion"]
Attacker: TypeAlias = Literal["server", "client", "collusion", "recipient", "auditor"]
"""Who runs an attack: a party of the federation, a recipient of the final model, or an auditor, who sees what a
client's defence released."""
Piece: TypeAlias = Literal["sent", "upload", "result", "own_upload", "relations"]
"""The tables of one round that an attack may ask for; see `View.table`."""
Places: TypeAlias = NDArray[np.integer[Any]]
"""Row numbers in the run's table, in a client's own order."""


def partial_table(rows: Table, places: Places, size: int) -> Table:
    """A table of `size` rows in which only `places` are known.

    >>> partial_table(np.ones((1, 2), np.float32), np.array([1]), 2).tolist()
    [[nan, nan], [1.0, 1.0]]
    """
    table: Table = np.full((size, rows.shape[1]), np.nan, dtype=rows.dtype)
    table[places] = rows
    return table


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """The rows of clients in the run's tables, for the clients whose rows the adversary sees.

    `entities` and `relations` are the sizes of the run's tables.
    """

    entities: int
    relations: int
    own_entities: Mapping[str, Places]
    own_relations: Mapping[str, Places] = field(default_factory=dict)


@short_repr("adversary", "victim")
@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The knowledge of one adversary about one victim.

    `client` is the adversary's own client; None for a server alone. `look` gives the adversary's part of a round.
    `scorer` and `margin` are public (everyone trains the same model). `owners` counts the clients that own an entity,
    where the adversary knows it (the server does; a client knows only the advertised number of `clients`).
    `own_triples` are the adversary client's; `auxiliary` triples are given to the adversary by the experiment.
    """

    adversary: Adversary
    victim: str
    client: str | None
    scorer: Scorer
    margin: float
    clients: int
    rounds: tuple[int, ...]
    look: Callable[[int], Round]
    numbering: Numbering
    owners: NDArray[np.int64] | None = None
    own_triples: Triples | None = None
    auxiliary: Triples | None = None
    names: Sequence[str] = field(default=())

    def until(self, round_number: int) -> View:
        """The same adversary at an earlier moment: only rounds up to `round_number`."""
        return replace(self, rounds=tuple(number for number in self.rounds if number <= round_number))

    def holds(self, round_number: int, piece: Piece) -> bool:
        """Whether the adversary holds this table of a round."""
        return self._rows(round_number, piece) is not None

    def table(self, round_number: int, piece: Piece) -> Table | None:
        """A table of one round in the run's numbering; None if the adversary does not hold it.

        sent        what the victim began the round from (a client knows the rows that it was sent itself)
        upload      the victim's upload (server and collusion)
        result      the rows after the round's averaging (a client: its own rows)
        own_upload  the adversary client's upload
        relations   the adversary client's own relation rows at the end of the round
        """
        rows = self._rows(round_number, piece)
        if rows is None:
            return None
        whose = self._whose(piece)
        if piece == "relations":
            return partial_table(rows, self.numbering.own_relations[whose], self.numbering.relations)
        return partial_table(rows, self.numbering.own_entities[whose], self.numbering.entities)

    def _whose(self, piece: Piece) -> str:
        """The client that the table belongs to."""
        about_victim = piece == "upload" or (piece in ("sent", "result") and self.adversary != "client")
        return self.victim if about_victim else self.client or ""

    def _rows(self, round_number: int, piece: Piece) -> Rows | None:
        seen, whose = self.look(round_number), self._whose(piece)
        if piece == "relations":
            return seen.private.get(whose, {}).get("relations")
        messages = {"sent": seen.broadcasts, "result": seen.results}.get(piece, seen.uploads)
        return messages.get(whose, {}).get("entities")
