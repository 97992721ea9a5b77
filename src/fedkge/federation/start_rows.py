"""A run that begins from given vectors: they take the place of the first random rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fedkge.base.errors import DataError
from fedkge.federation.client import Client
from fedkge.federation.server import Server
from fedkge.models.tables import Table
from fedkge.runs.round import Shared


def begin_from(start: Mapping[Shared, Mapping[str, Table]], server: Server, clients: Collection[Client]) -> None:
    """Write the rows of these names into the tables of the clients and of the server."""
    for kind, rows in start.items():
        for client in clients:
            names = client.shard.entities if kind == "entities" else client.shard.relations
            table = client.embedding.tables.entities if kind == "entities" else client.embedding.tables.relations
            _fill(table, names.index, rows, kind)
        if kind in server.tables:
            _fill(server.tables[kind], server.names[kind], rows, kind)


def _fill(table: Table, places: Mapping[str, int], rows: Mapping[str, Table], kind: str) -> None:
    for name, row in rows.items():
        place = places.get(name)
        if place is None:
            continue
        if row.shape != table[place].shape:
            raise DataError(
                f"start vectors of {kind}: expected {table.shape[1]} numbers for {name!r}, got {row.shape[0]}; "
                "use the same model and dimension"
            )
        table[place] = row
