"""Tables and lines for people, on stdout; JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedkge.base.text import LINES, printable

if TYPE_CHECKING:
    from fedkge.graph.split import ShardSummary
    from fedkge.runs.run import Run

WIDE = 160
"""Width where there is no terminal: nothing is folded in a file."""

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

FIXED_WIDTH, COLUMN_GAP = 50, 2
"""Of the table of shards: its counts, and what stands between the clients' columns beside them."""

Metrics = Mapping[str, float]


class PlainConsole(Console):
    """A console that shows text as it is: names of entities, files and sites can neither style nor drive it.

    What does not print is written out, and square brackets are square brackets.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, but no text as markup and no control character as itself."""
        shown = (printable(item, keep=LINES) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **{**options, "markup": False})


def stdout() -> Console:
    """Where results go."""
    return _console(PlainConsole(highlight=False))


def stderr() -> Console:
    """Where everything else goes."""
    return _console(PlainConsole(stderr=True, highlight=False))


def _console(console: Console) -> Console:
    if not console.is_terminal:
        console.width = WIDE
    return console


def print_json(value: Any) -> None:
    """One line of JSON on stdout, at once; in ASCII, so that no terminal or pipe can garble it."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A line on stderr that is neither folded nor read as markup."""
    stderr().print(text, markup=False, soft_wrap=True)


def grid(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = (0,)
) -> RenderableType:
    """A table with a title; the columns `words` hold words, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), show_header=any(header))
    for number, name in enumerate(header):
        in_words = number in words
        table.add_column(name, justify="left" if in_words else "right", no_wrap=not in_words)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return Group(Text(printable(title), style="bold"), table, "") if title else Group(table, "")


def metric_rows(record: Mapping[str, Any], label: str, *, each: bool = True) -> list[tuple[str, int, Metrics]]:
    """(name, triples, metrics) of a metrics.jsonl line: all clients, each client, the controls."""
    from fedkge.evaluation import weighted_metrics  # noqa: PLC0415 (heavy)

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
    from fedkge.runs.strategies import make_strategy  # noqa: PLC0415 (heavy)

    strategy = make_strategy(run.configuration.federation.strategy)
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
