"""Rows changed: a count, not an attack. Which rows of an upload differ from what was sent at all.

Without a defence only the rows that training touched differ, and they tell which entities the victim's batches held.
Under dense noise every row differs; a sparse selection shows itself here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkge.attacks.structure import known_rows, rounds_with, table_of
from fedkge.models.tables import Table
from fedkge.runs.view import View


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """Of `known` rows that were sent and came back in `round`, `changed` differ."""

    round: int
    changed: int
    known: int

    @property
    def share(self) -> float:
        """Changed rows as a part of the known ones."""
        return self.changed / self.known if self.known else 0.0


def count_changed(sent: Table, upload: Table, round_number: int = 0) -> RowsChanged:
    """Count the rows that differ in any number.

    >>> count_changed(np.array([[1.0], [2.0], [np.nan]]), np.array([[1.0], [3.0], [np.nan]]))
    RowsChanged(round=0, changed=1, known=2)
    """
    known = known_rows(sent) & known_rows(upload)
    changed = known & (sent != upload).any(axis=1)
    return RowsChanged(round_number, int(np.count_nonzero(changed)), int(np.count_nonzero(known)))


def rows_changed(view: View) -> list[RowsChanged]:
    """The count of each round in which the victim took part, for a server's or a collusion's view."""
    return [
        count_changed(table_of(view, number, "sent"), table_of(view, number, "upload"), number)
        for number in rounds_with(view, "rows-changed", "sent", "upload")
    ]
