"""`fedkge data list`."""

from __future__ import annotations

from typing import Any

from fedkge.cli.arguments import Json
from fedkge.cli.data.facts import count, dataset_facts
from fedkge.cli.tables import grid, print_json, say, stdout
from fedkge.graph.datasets import DATASETS, cache_folder, is_cached

EXAMPLE = "Example: fedkge data list"


def list_data(as_json: Json = False) -> None:
    """List the data sets that fedkge knows."""
    found = [dataset_facts(dataset, is_cached(name)) for name, dataset in DATASETS.items()]
    if as_json:
        print_json(found)
        return
    keys = ("entities", "relations", "train", "valid", "test")
    rows = [(item["name"], *(count(item[key]) for key in keys), _state(item), item["licence"]) for item in found]
    stdout().print(grid("", ("name", *keys, "here", "licence"), rows, words=(0, 7)))
    say(f"Folder of the data sets: {cache_folder()} (set FEDKGE_DATA to choose another)")


def _state(item: dict[str, Any]) -> str:
    if item["built"]:
        return "built"
    return "yes" if item["cached"] else "no"
