"""Tables of metrics, and what a federation sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType

from fedkge.cli.tables import grid
from fedkge.evaluation import weighted_metrics
from fedkge.runs.run import Run
from fedkge.runs.strategies import strategy_of

METRICS = {
    "tail\nMRR": "tail.realistic.mrr",
    "head\nMRR": "head.realistic.mrr",
    "both\nMRR": "both.realistic.mrr",
    "Hits\n@1": "both.realistic.hits_at_1",
    "Hits\n@3": "both.realistic.hits_at_3",
    "Hits\n@10": "both.realistic.hits_at_10",
    "\nAMRI": "both.realistic.amri",
}
"""Columns of a metric table; Hits and AMRI are those of both sides."""

Metrics = Mapping[str, float]


def metric_rows(record: Mapping[str, Any], label: str, *, each: bool = True) -> list[tuple[str, int, Metrics]]:
    """(name, triples, metrics) of a metrics.jsonl line: all clients, each client, the controls."""
    clients: Mapping[str, Mapping[str, Any]] = record["clients"]
    total = sum(int(part["triples"]) for part in clients.values())
    rows: list[tuple[str, int, Metrics]] = [(label, total, record)]
    if each and len(clients) > 1:
        rows += [(f"  {name}", int(part["triples"]), part) for name, part in clients.items()]
    names = next(iter(clients.values()))["controls"] if clients else ()
    for name in names:
        parts = [(int(part["triples"]), part["controls"][name]) for part in clients.values()]
        rows.append((name, total, weighted_metrics(parts)))
    return rows


CONTROLS_NOTE = "Popularity, exact or with noise, is an experimenter's control: no client's budget pays for it.\n"


def metric_table(rows: Iterable[tuple[str, int, Metrics]], title: str) -> RenderableType:
    """The table that every result is shown in."""
    body = [
        (name, f"{triples:,}", *(f"{metrics[key]:.3f}" for key in METRICS.values())) for name, triples, metrics in rows
    ]
    table = grid(title, ("", "\ntriples", *METRICS), body)
    return Group(table, CONTROLS_NOTE) if any(row[0].startswith("popularity") for row in body) else table


def human_bytes(count: float) -> str:
    """A number of bytes as people write it.

    >>> human_bytes(512), human_bytes(1536), human_bytes(3 * 2**30)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def message_bytes(run: Run) -> dict[str, int]:
    """The size of one upload (and of one broadcast) of each client; empty where nothing is shared."""
    strategy = strategy_of(run.configuration)
    if strategy.pooled:
        return {}
    sizes = {}
    for name in run.clients:
        tables = run.embedding(name).tables
        sizes[name] = sum(getattr(tables, kind).nbytes for kind in strategy.shared)
    return {name: size for name, size in sizes.items() if size}


def cost_line(run: Run, record: Mapping[str, Any]) -> str:
    """What the federation sent, in one line; blank where nothing is shared or nobody is there to share with."""
    sizes = message_bytes(run)
    if len(sizes) < 2:
        return ""
    least, most = human_bytes(min(sizes.values())), human_bytes(max(sizes.values()))
    each = most if least == most else f"{least} to {most}"
    up, down = human_bytes(record["bytes_up"]), human_bytes(record["bytes_down"])
    return f"Communication: {each} per client and round, each way; in all {up} up, {down} down."
