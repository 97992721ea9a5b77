"""The table of shards: what each client holds and shares."""

from __future__ import annotations

from rich.console import Group, RenderableType

from fedkge.cli.tables import grid
from fedkge.graph.split import ShardSummary

FIXED_WIDTH, COLUMN_GAP = 50, 2
"""Of the table of shards: its counts, and what stands between the clients' columns beside them."""


def shard_table(summary: ShardSummary, width: int) -> RenderableType:
    """What each client holds, and how many entities it shares with each other one (on average, if that is too wide)."""
    counts = [
        (one.name, *(f"{count:,}" for count in (one.train, one.valid, one.test, one.entities, one.relations)))
        for one in summary.clients
    ]
    header: tuple[str, ...] = ("client", "train", "valid", "test", "entities", "relations")
    shared = summary.shared_entities
    if FIXED_WIDTH + sum(len(one.name) + COLUMN_GAP for one in summary.clients) <= width:
        header += tuple(one.name for one in summary.clients)
        pairs = [tuple("" if i == j else f"{count:,}" for j, count in enumerate(row)) for i, row in enumerate(shared)]
        title = "Shards; on the right, the entities that two clients share"
    else:
        header += ("shared",)
        pairs = [(f"{(sum(row) - row[i]) / (len(row) - 1):,.0f}",) for i, row in enumerate(shared)]
        title = "Shards; shared: entities in common with another client, on average"
    rows = [(*count, *pair) for count, pair in zip(counts, pairs, strict=True)]
    outside, unseen = sum(summary.outside), sum(summary.unseen)
    lost = (
        f"In no shard: {outside:,} triples; left out: {unseen:,} held-out triples with names that their client's "
        "train lacks.\n"
    )
    return Group(grid(title, header, rows), lost) if outside or unseen else grid(title, header, rows)
