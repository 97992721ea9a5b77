"""What `fedkge data list` and `fedkge data show` say about a data set."""

from __future__ import annotations

from typing import Any

from fedkge.graph.catalogue import Dataset


def dataset_facts(dataset: Dataset, cached: bool) -> dict[str, Any]:
    """The data set for programs."""
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


def count(number: int | None) -> str:
    """A number as tables show it, blank where it is unknown.

    >>> count(14541), count(None)
    ('14,541', '')
    """
    return "" if number is None else f"{number:,}"
