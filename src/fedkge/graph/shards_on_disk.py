"""Folders of shards: what `fedkge data split --out` writes and `fedkge train --data` reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedkge.base.errors import DataError
from fedkge.base.plain_files import read_text
from fedkge.base.private_files import make_private, open_private
from fedkge.graph.folders import read_folder
from fedkge.graph.graph import SPLITS, Graph, Triples, Vocabulary, no_triples
from fedkge.graph.shards import Shards, client_names, summarise
from fedkge.graph.streams import decoded_lines

NOTICE = "notice.txt"
PREFIX = "client-"
ELSEWHERE = "elsewhere-"


def save_shards(shards: Shards, folder: Path) -> None:
    """Write folders client-0, client-1 ...: train.txt, valid.txt, test.txt (names), entities.dict, relations.dict.

    Beside them, for evaluation: elsewhere-client-0.txt ..., true triples that a client does not hold.

    >>> from tempfile import TemporaryDirectory
    >>> from fedkge.graph import Graph
    >>> from fedkge.graph.split import split
    >>> graph = Graph.from_names("tiny", train=[("a", "likes", "b"), ("b", "likes", "a")])
    >>> with TemporaryDirectory() as folder:
    ...     save_shards(split(graph, clients=2, by="triple", seed=1), Path(folder))
    ...     [len(shard.train) for shard in load_shards(Path(folder))]
    [1, 1]
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: expected a new or empty folder for the shards, got one in use: choose another")
    for graph in shards:
        _check_writable(graph.entities)
        _check_writable(graph.relations)
    for name, graph in zip(client_names(len(shards)), shards, strict=True):
        target = folder / name
        make_private(target)
        entities, relations = graph.entities, graph.relations
        _write(target / "entities.dict", (f"{row}\t{name}" for row, name in enumerate(entities)))
        _write(target / "relations.dict", (f"{row}\t{name}" for row, name in enumerate(relations)))
        tables = {target / f"{part}.txt": graph.split(part) for part in SPLITS}
        for path, triples in {**tables, folder / f"{ELSEWHERE}{name}.txt": graph.elsewhere}.items():
            if rows := triples.tolist():
                _write(path, (f"{entities[h]}\t{relations[r]}\t{entities[t]}" for h, r, t in rows))
        if graph.notice:
            _write(target / NOTICE, [graph.notice])


def _check_writable(names: Vocabulary) -> None:
    for name in names:
        if not name or not set(name).isdisjoint("\t\r\n"):
            raise DataError(f"expected names without tabs and line ends to write as columns, got {name!r}: rename it")


def _write(path: Path, lines: Iterable[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n", opener=open_private) as file:
        file.writelines(f"{line}\n" for line in lines)


def holds_shards(folder: Path) -> bool:
    """Whether this is a folder for `load_shards`, and not one graph."""
    return 0 in _client_folders(folder)


def _client_folders(folder: Path) -> dict[int, Path]:
    """The clients' folders by number, which may have leading zeros."""
    found = ((path, path.name.removeprefix(PREFIX)) for path in sorted(folder.glob(f"{PREFIX}*")) if path.is_dir())
    numbered: dict[int, Path] = {}
    for path, number in found:
        if number.isascii() and number.isdigit():
            if int(number) in numbered:
                raise DataError(
                    f"{folder}: expected one folder per client, got {numbered[int(number)].name} and {path.name}"
                )
            numbered[int(number)] = path
    return numbered


def _elsewhere(path: Path, graph: Graph) -> Triples:
    if not path.exists():
        return no_triples()
    entity, relation = graph.entities.id_of, graph.relations.id_of
    rows = []
    for number, line in decoded_lines(path):
        fields = line.split("\t")
        if len(fields) != 3:
            raise DataError(f"{path}:{number}: expected 3 fields (head, relation, tail), got {len(fields)}")
        head, name, tail = fields
        rows.append((entity(head, "entity"), relation(name, "relation"), entity(tail, "entity")))
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def load_shards(folder: Path) -> Shards:
    """Read what `save_shards` wrote, with the same ids; the triples that were left out are no longer known."""
    numbered = _client_folders(folder)
    if not numbered or sorted(numbered) != list(range(len(numbered))):
        raise DataError(f"{folder}: expected folders client-0, client-1 and so on, got others or none")
    graphs = []
    for number, name in enumerate(client_names(len(numbered))):
        path = numbered[number]
        notice = path / NOTICE
        text = read_text(notice, DataError).strip() if notice.exists() else ""
        graph = read_folder(path, skip_header=False)  # `save_shards` writes none
        graphs.append(
            replace(graph, name=name, notice=text, elsewhere=_elsewhere(folder / f"{ELSEWHERE}{name}.txt", graph))
        )
    return Shards(folder.resolve().name, tuple(graphs), summarise(graphs))
