"""What one adversary saw of a federation, and nothing else: the only input of an attack.

Entities and relations are numbered as in the run's `entities.txt` and `relations.txt`. A table that the adversary
knows only in part has NaN in the rows that it does not know, so that a score built on them is NaN and is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.graph import Triples
from fedkge.models.scorer import Scorer
from fedkge.models.tables import Table

Adversary: TypeAlias = Literal["server", "client", "collusion"]
Attacker: TypeAlias = Literal["server", "client", "collusion", "recipient", "auditor"]
"""Who plays an attack: beside the parties of a federation, who is given the final model, and an auditor who sees what a
client released."""


def partial_table(rows: Table, places: NDArray[np.integer], size: int) -> Table:
    """A table of `size` rows in which only `places` are known.

    >>> partial_table(np.ones((1, 2), np.float32), np.array([1]), 2).tolist()
    [[nan, nan], [1.0, 1.0]]
    """
    table: Table = np.full((size, rows.shape[1]), np.nan, dtype=rows.dtype)
    table[places] = rows
    return table


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What the adversary holds of one round; None where it holds nothing of that kind.

    sent       what the victim began the round from (a client knows the rows that it was sent itself)
    upload     the victim's upload (server and collusion)
    result     the rows after the round's averaging (a client: its own rows)
    own_upload the adversary client's upload
    relations  the adversary client's own relation rows at the end of the round
    """

    round: int
    sent: Table | None = None
    upload: Table | None = None
    result: Table | None = None
    own_upload: Table | None = None
    relations: Table | None = None


@short_repr("adversary", "victim")
@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The knowledge of one adversary about one victim.

    `scorer` and `margin` are public (everyone trains the same model). `owners` counts the clients that own an entity,
    where the adversary knows it (the server does; a client knows only the advertised number of `clients`).
    `own_triples` are the adversary client's; `auxiliary` triples are given to the adversary by the experiment.
    """

    adversary: Adversary
    victim: str
    scorer: Scorer
    margin: float
    clients: int
    rounds: tuple[int, ...]
    look: Callable[[int], Sight]
    owners: NDArray[np.int64] | None = None
    own_triples: Triples | None = None
    auxiliary: Triples | None = None
    names: Sequence[str] = field(default=())

    @property
    def last(self) -> Sight:
        """The newest round that was seen."""
        return self.look(self.rounds[-1])

    def until(self, round_number: int) -> View:
        """The same adversary at an earlier moment: only rounds up to `round_number`."""
        return replace(self, rounds=tuple(number for number in self.rounds if number <= round_number))
