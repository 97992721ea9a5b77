"""`fedkge data describe`."""

from __future__ import annotations

from dataclasses import asdict

from fedkge.cli.arguments import ColumnNames, GraphPath, Json, SkipHeader
from fedkge.cli.data.facts import count
from fedkge.cli.tables import grid, print_json, stdout
from fedkge.graph.datasets import load
from fedkge.graph.readers import parse_columns
from fedkge.graph.summary import GraphSummary
from fedkge.graph.summary import describe as summarise

EXAMPLE = "Example: fedkge data describe my-graph/"


def describe(path: GraphPath, columns: ColumnNames = "", skip_header: SkipHeader = None, as_json: Json = False) -> None:
    """Read a graph and show what it holds and what was dropped."""
    summary = summarise(load(path, columns=parse_columns(columns), skip_header=skip_header))
    if as_json:
        print_json(asdict(summary))
    else:
        _show(summary)


def _show(summary: GraphSummary) -> None:
    console = stdout()
    splits = list(summary.triples)
    lines = [
        ("triples", summary.triples),
        ("self-loops", summary.self_loops),
        ("with names unseen in train", summary.unseen),
        ("also in train", summary.also_in_train),
    ]
    rows = [(label, *(count(counts.get(split)) for split in splits)) for label, counts in lines]
    console.print(grid(summary.name, ("", *splits), rows))
    kinds = ", ".join(f"{kind}: {number:,}" for kind, number in summary.categories.items())
    facts = [
        ("entities", f"{summary.entities:,} ({summary.entities_in_train:,} in train)"),
        (
            "degree in train",
            f"mean {summary.degree_mean:.1f}, median {summary.degree_median:g}, most {summary.degree_max:,}",
        ),
        ("relations", f"{summary.relations:,} ({kinds})"),
        ("repeated triples removed", f"{summary.removed_duplicates:,}"),
    ]
    console.print(grid("", ("", ""), facts, words=(0, 1)))
    if summary.notice:
        console.print(summary.notice)
