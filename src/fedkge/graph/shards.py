"""The clients' graphs side by side: what each holds, what each pair shares, and what no client got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fedkge.graph.graph import SPLITS, Graph


def client_names(count: int) -> list[str]:
    """client-0, client-1, ... with as many digits as sort well.

    >>> client_names(2)
    ['client-0', 'client-1']
    >>> client_names(11)[0]
    'client-00'
    """
    digits = len(str(count - 1))
    return [f"client-{number:0{digits}d}" for number in range(count)]


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """What one client holds."""

    name: str
    train: int
    valid: int
    test: int
    entities: int
    relations: int


@dataclass(frozen=True, slots=True)
class ShardSummary:
    """What the clients hold, what each pair shares, and which triples no client got.

    `shared_entities[i][j]` counts the entities that clients i and j both own (on the diagonal: that i owns).
    `outside` counts triples, per split, that belong to no client; `unseen` those of valid and test that belong to a
    client whose training triples lack one of their names.
    """

    clients: tuple[ShardCounts, ...]
    shared_entities: tuple[tuple[int, ...], ...]
    outside: tuple[int, int, int] = (0, 0, 0)
    unseen: tuple[int, int, int] = (0, 0, 0)

    def rows(self) -> list[tuple[str, ...]]:
        """A table for people, header first: counts per client, then the entities shared with each client."""
        header = (
            "client",
            *SPLITS,
            "entities",
            "relations",
            *(f"shared with {client.name}" for client in self.clients),
        )
        body = [
            (
                client.name,
                *(
                    f"{count:,}"
                    for count in (client.train, client.valid, client.test, client.entities, client.relations)
                ),
                *("" if other == row else f"{count:,}" for other, count in enumerate(self.shared_entities[row])),
            )
            for row, client in enumerate(self.clients)
        ]
        blank = ("",) * (len(header) - 4)
        lost = [("outside all shards", self.outside), ("unseen in train", self.unseen)]
        return [header, *body, *((label, *(f"{count:,}" for count in counts), *blank) for label, counts in lost)]

    def text(self) -> str:
        """The table as plain text, one line per row."""
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        gaps = [width + 2 for width in widths[1:]]
        lines = (row[0].ljust(widths[0]) + "".join(map(str.rjust, row[1:], gaps)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """The clients' graphs, in the order of their numbers, and a summary of them."""

    name: str
    graphs: tuple[Graph, ...]
    summary: ShardSummary

    def __repr__(self) -> str:
        triples = sum(len(graph.train) for graph in self.graphs)
        return f"Shards({self.name!r}: {len(self)} client{'' if len(self) == 1 else 's'}, {triples:,} train triples)"

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Iterator[Graph]:
        return iter(self.graphs)

    def __getitem__(self, client: int) -> Graph:
        return self.graphs[client]


def summarise(
    graphs: Sequence[Graph], outside: tuple[int, int, int] = (0, 0, 0), unseen: tuple[int, int, int] = (0, 0, 0)
) -> ShardSummary:
    """Count what the clients hold, and by name what each pair shares."""
    counts = tuple(
        ShardCounts(g.name, len(g.train), len(g.valid), len(g.test), len(g.entities), len(g.relations)) for g in graphs
    )
    if len(graphs) == 1:
        return ShardSummary(counts, ((counts[0].entities,),), outside, unseen)
    owned = [frozenset(graph.entities) for graph in graphs]
    return ShardSummary(counts, tuple(tuple(len(one & two) for two in owned) for one in owned), outside, unseen)
