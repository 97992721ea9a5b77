"""`fedkge data show`."""

from __future__ import annotations

from dataclasses import asdict

from fedkge.cli.arguments import DatasetName, Json
from fedkge.cli.data.facts import count, dataset_facts
from fedkge.cli.tables import grid, print_json, stdout
from fedkge.graph.datasets import cache_folder, is_cached, look_up_dataset

EXAMPLE = "Example: fedkge data show fb15k-237"


def show(name: DatasetName, as_json: Json = False) -> None:
    """Show the origin, size, licence and citation of a data set."""
    dataset = look_up_dataset(name)
    folder = cache_folder() / name
    facts = dataset_facts(dataset, is_cached(name)) | {
        "folder": str(folder) if dataset.files else None,
        "advice": dataset.advice.format(name=name, folder=folder),
        "files": [{**asdict(file), "file": file.file_name} for file in dataset.files],
    }
    if as_json:
        print_json(facts)
        return
    rows = [(key, _words(value)) for key, value in facts.items() if key != "files" and value not in (None, "")]
    rows += [(f"{file.file_name}", file.url or f"sha256 {file.sha256}") for file in dataset.files]
    stdout().print(grid("", ("", ""), rows, words=(0, 1)))


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return count(value) if isinstance(value, int) else str(value)
