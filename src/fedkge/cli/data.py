"""`fedkge data`: named data sets, what a graph holds, and splits into shards."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.cli.errors import guarded
from fedkge.cli.tables import grid, print_json, say, shard_table, stdout

if TYPE_CHECKING:
    from fedkge.graph.catalogue import Dataset
    from fedkge.graph.summary import GraphSummary

app = typer.Typer(no_args_is_help=True, help="Named data sets, what a graph holds, and splits into shards.")

Json = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Name = Annotated[str, typer.Argument(help="Name of a data set; `fedkge data list` has them.")]
ColumnNames = Annotated[
    str, typer.Option("--columns", metavar="HEAD,RELATION,TAIL", help="Names of the columns of a CSV or Parquet file.")
]
SkipHeader = Annotated[
    bool | None,
    typer.Option(
        "--skip-header/--no-skip-header",
        help="TSV: skip the first line of each file, or read it as a triple; without either a header is an error.",
        show_default=False,
    ),
]
NameOrPath = Annotated[str, typer.Argument(metavar="PATH", help="A file, a folder, or the name of a data set.")]


@app.command("list", epilog="Example: fedkge data list")
@guarded
def list_data(as_json: Json = False) -> None:
    """Name the data sets that fedkge knows."""
    from fedkge.graph.datasets import DATASETS, cache_folder, is_cached  # noqa: PLC0415

    found = [_facts(dataset, is_cached(name)) for name, dataset in DATASETS.items()]
    if as_json:
        print_json(found)
        return
    keys = ("entities", "relations", "train", "valid", "test")
    rows = [(item["name"], *(_count(item[key]) for key in keys), _state(item), item["licence"]) for item in found]
    stdout().print(grid("", ("name", *keys, "here", "licence"), rows, words=(0, 7)))
    say(f"Folder of the data sets: {cache_folder()} (FEDKGE_DATA chooses another)")


def _facts(dataset: Dataset, cached: bool) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "entities": dataset.entities,
        "relations": dataset.relations,
        **{split: dataset.triples(split) for split in ("train", "valid", "test")},
        "cached": cached,
        "built": not dataset.files,
        "downloadable": dataset.downloadable,
        "licence": dataset.licence,
        "citation": dataset.citation,
    }


def _state(item: dict[str, Any]) -> str:
    if item["built"]:
        return "built"
    return "yes" if item["cached"] else "no"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


@app.command("show", epilog="Example: fedkge data show fb15k-237")
@guarded
def show(name: Name, as_json: Json = False) -> None:
    """Say what a data set is, where it comes from, its licence and its citation."""
    from fedkge.graph.datasets import cache_folder, is_cached, look_up_dataset  # noqa: PLC0415

    dataset = look_up_dataset(name)
    folder = cache_folder() / name
    facts = _facts(dataset, is_cached(name)) | {
        "folder": str(folder) if dataset.files else None,
        "advice": dataset.advice.format(name=name, folder=folder),
        "files": [{**asdict(file), "file": file.file_name} for file in dataset.files],
    }
    if as_json:
        print_json(facts)
        return
    rows = [
        (key, _count(value) if isinstance(value, int) and not isinstance(value, bool) else _words(value))
        for key, value in facts.items()
        if key != "files" and value not in (None, "")
    ]
    rows += [(f"{file.file_name}", file.url or f"sha256 {file.sha256}") for file in dataset.files]
    stdout().print(grid("", ("", ""), rows, words=(0, 1)))


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


@app.command("fetch", epilog="Example: fedkge data fetch codex-s")
@guarded
def fetch(name: Name, as_json: Json = False) -> None:
    """Download a data set into the cache and check its sha256; an interrupted download goes on."""
    from fedkge.graph.datasets import fetch as fetch_data  # noqa: PLC0415

    folder = fetch_data(name)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        stdout().print(str(folder), markup=False, soft_wrap=True)


@app.command("describe", epilog="Example: fedkge data describe my-graph/")
@guarded
def describe(
    path: NameOrPath, columns: ColumnNames = "", skip_header: SkipHeader = None, as_json: Json = False
) -> None:
    """Read a graph and show what is in it and what was dropped."""
    from fedkge.graph.datasets import load  # noqa: PLC0415 (heavy)
    from fedkge.graph.readers import parse_columns  # noqa: PLC0415
    from fedkge.graph.summary import describe as summarise  # noqa: PLC0415

    summary = summarise(load(path, columns=parse_columns(columns), skip_header=skip_header))
    if as_json:
        print_json(asdict(summary))
        return
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
    rows = [(label, *(_count(counts.get(split)) for split in splits)) for label, counts in lines]
    console.print(grid(summary.name, ("", *splits), rows))
    kinds = ", ".join(f"{kind}: {count:,}" for kind, count in summary.categories.items())
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
        console.print(summary.notice, markup=False)


@app.command("split", epilog="Example: fedkge data split codex-s --clients 3 --by entity --out shards/")
@guarded
def split(
    path: NameOrPath,
    clients: Annotated[int, typer.Option(min=1, help="How many shards.")] = 3,
    by: Annotated[str, typer.Option(metavar="entity|relation|triple", help="How triples are dealt.")] = "entity",
    overlap: Annotated[
        float | None,
        typer.Option(help="Share of the other clients' entities that each also gets.", show_default="0.25"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same shards.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder to write; without it only the summary is shown.")] = None,
    columns: ColumnNames = "",
    skip_header: SkipHeader = None,
    as_json: Json = False,
) -> None:
    """Cut a graph into client shards and show what they share; `train --data FOLDER` takes the folder."""
    from fedkge.graph.datasets import load  # noqa: PLC0415 (heavy)
    from fedkge.graph.readers import parse_columns  # noqa: PLC0415
    from fedkge.graph.shards_on_disk import save_shards  # noqa: PLC0415
    from fedkge.graph.split import split as cut  # noqa: PLC0415

    shards = cut(load(path, columns=parse_columns(columns), skip_header=skip_header), clients, by, seed, overlap)
    if out is not None:
        save_shards(shards, out)
    if as_json:
        print_json({**asdict(shards.summary), "folder": str(out) if out else None})
        return
    console = stdout()
    console.print(shard_table(shards.summary, console.width))
    if out is not None:
        stdout().print(f"Shards: {out}", markup=False, soft_wrap=True)
        say(f"Next: fedkge train --data {out}")
