"""A client's two tables, and which of their rows it shares with the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import RunError
from fedkge.federation.upload_checks import complaint
from fedkge.models import Embedding, Tables
from fedkge.runs.round import Rows, Shared


class SharedTables:
    """The tables of one model. `kinds` says which of them are shared, and `share` which of their rows."""

    def __init__(self, owner: str, embedding: Embedding, kinds: tuple[Shared, ...]) -> None:
        self._owner, self._embedding, self._kinds = owner, embedding, kinds
        self.places: dict[Shared, NDArray[np.int64]] = {}
        """The rows of a table that are shared, where these are not all of it."""

    def all(self) -> dict[Shared, NDArray[Any]]:
        """Both tables themselves."""
        return {"entities": self._embedding.tables.entities, "relations": self._embedding.tables.relations}

    def share(self, places: Mapping[Shared, NDArray[np.int64]]) -> None:
        """Share only these rows from now on."""
        if set(places) != set(self._kinds):
            raise RunError(f"{self._owner}: expected places in {sorted(self._kinds)}, got {sorted(places)}")
        for kind, rows in places.items():
            height = len(self.all()[kind])
            if not (np.diff(rows, prepend=-1) > 0).all() or (len(rows) and rows[-1] >= height):
                raise RunError(f"{self._owner}: expected ascending places below {height} in {kind}, got others")
        self.places = dict(places)

    def shared(self) -> dict[Shared, Rows]:
        """Copies of the rows that are shared."""
        tables = {kind: self.all()[kind] for kind in self._kinds}
        return {
            kind: table[self.places[kind]] if kind in self.places else table.copy() for kind, table in tables.items()
        }

    def unshared(self) -> dict[Shared, Rows]:
        """Copies of the tables that nobody else gets."""
        return {kind: table.copy() for kind, table in self.all().items() if kind not in self._kinds}

    def check(self, rows: Mapping[Shared, Rows]) -> None:
        """Refuse rows of the server that do not fit what is shared."""
        if set(rows) != set(self._kinds):
            raise RunError(f"{self._owner}: expected the tables {sorted(self._kinds)}, was sent {sorted(rows)}")
        for kind, table in rows.items():
            height, width = self.all()[kind].shape
            expected = len(self.places[kind]) if kind in self.places else height
            reason = complaint(table, (expected, width), largest_norm=np.inf)
            if reason:
                raise RunError(f"{self._owner} was sent broken {kind}: {reason}")

    def take(self, rows: Mapping[Shared, Rows]) -> None:
        """Write the server's rows into the tables."""
        for kind, table in rows.items():
            self.all()[kind][self.places.get(kind, ...)] = table

    def with_rows(self, rows: Mapping[Shared, Rows]) -> Embedding:
        """The model with the server's rows in it; the tables here stay as they are."""
        tables = {**self.all(), **rows}
        for kind, places in self.places.items():
            tables[kind] = self.all()[kind].copy()
            tables[kind][places] = rows[kind]
        made = Tables(tables["entities"], tables["relations"])
        return Embedding(self._embedding.scorer, made, self._embedding.margin)
