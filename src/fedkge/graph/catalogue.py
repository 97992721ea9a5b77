"""The named data sets: counts, checksums, sources, licences, citations. `catalogue.toml` lists them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fedkge.graph.graph import SPLITS


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One split of a data set. `sha256` is that of its uncompressed LF text; `url` is blank if there is none."""

    split: str
    triples: int
    sha256: str
    url: str = ""

    @property
    def file_name(self) -> str:
        """The name of the uncompressed file in the cache."""
        return f"{self.split}.txt"


@dataclass(frozen=True, slots=True)
class Dataset:
    """The facts about a named data set that are known before it is read.

    >>> DATASETS["fb15k-237"].entities, DATASETS["fb15k-237"].triples("test")
    (14541, 20466)
    """

    name: str
    entities: int | None
    """None for a graph that is built when it is loaded; as in `relations` and `triples`."""
    relations: int | None
    files: tuple[SplitFile, ...]
    licence: str
    citation: str
    advice: str = ""
    """How to get files that cannot be downloaded; `{name}` and `{folder}` are filled in."""
    label_column: int = 1
    """The column of `entity_labels.tsv` that holds the words; column 0 is the entity's name."""

    @property
    def downloadable(self) -> bool:
        """Whether every file has an address."""
        return bool(self.files) and all(file.url for file in self.files)

    def triples(self, split: str) -> int | None:
        """How many triples the split has."""
        return next((file.triples for file in self.files if file.split == split), None)


def _dataset(name: str, facts: dict[str, Any]) -> Dataset:
    """One table of catalogue.toml."""
    url = facts.pop("url", "")
    files = []
    for split in SPLITS if SPLITS[0] in facts else ():
        triples, sha256 = facts.pop(split)
        files.append(SplitFile(split, triples, sha256, f"{url}/{split}.txt" if url else ""))
    return Dataset(name, facts.pop("entities", None), facts.pop("relations", None), tuple(files), **facts)


def _read() -> dict[str, Dataset]:
    text = (resources.files("fedkge.graph") / "catalogue.toml").read_text(encoding="utf-8")
    return {name: _dataset(name, facts) for name, facts in tomllib.loads(text).items()}


DATASETS: dict[str, Dataset] = _read()
"""Every named data set. "demo" has no files: it is built when it is loaded."""
