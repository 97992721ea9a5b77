"""`fedkge data fetch`."""

from __future__ import annotations

from fedkge.cli.arguments import DatasetName, Json
from fedkge.cli.tables import print_json, print_line
from fedkge.graph.datasets import fetch as fetch_data

EXAMPLE = "Example: fedkge data fetch codex-s"


def fetch(name: DatasetName, as_json: Json = False) -> None:
    """Download a data set and check its sha256.

    If a download was interrupted, it continues where it stopped.
    """
    folder = fetch_data(name)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        print_line(str(folder))
