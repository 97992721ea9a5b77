"""Folders that bring their own ids: OpenKE's `*2id.txt`, and `entities.dict` with `relations.dict`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.graph.building import graph_of_tables
from fedkge.graph.graph import SPLITS, Graph, Triples, Vocabulary
from fedkge.graph.readers import TSV_SUFFIXES, NameBlock, read_names
from fedkge.graph.streams import COMPRESSIONS, decoded, decoded_lines, format_suffix, line_blocks


def find_file(folder: Path, name: str) -> Path | None:
    """The file called `name` in the folder, compressed or not."""
    candidates = (folder / (name + suffix) for suffix in ("", *COMPRESSIONS))
    return next((path for path in candidates if path.is_file()), None)


def _need_file(folder: Path, name: str) -> Path:
    path = find_file(folder, name)
    if path is None:
        raise DataError(f"{folder}: expected {name} beside the other files, got none")
    return path


def is_openke_folder(folder: Path) -> bool:
    """Whether the folder holds triples of ids in OpenKE's form."""
    return find_file(folder, "train2id.txt") is not None


def is_dict_folder(folder: Path) -> bool:
    """Whether the folder holds the numbered names that RotatE's and FedE's data come with."""
    return any(find_file(folder, name) is not None for name in ("entities.dict", "relations.dict"))


def read_openke_folder(folder: Path, name: str) -> Graph:
    """Read `entity2id.txt`, `relation2id.txt` and `{train,valid,test}2id.txt`.

    Every file starts with its count; a line of triples is head, tail, relation. Ids stay what they are.
    """
    entities = _openke_names(_need_file(folder, "entity2id.txt"))
    relations = _openke_names(_need_file(folder, "relation2id.txt"))
    tables = {}
    for split in SPLITS:
        path = find_file(folder, f"{split}2id.txt")
        if path is not None:
            tables[split] = _openke_triples(path, len(entities), len(relations))
    return graph_of_tables(name, entities, relations, tables)


def _openke_names(path: Path) -> Vocabulary:
    lines = decoded_lines(path)
    count = _count_line(lines, path)
    rows: dict[int, str] = {}
    for number, line in lines:
        name, _, identifier = line.rpartition("\t" if "\t" in line else " ")
        _add_name(rows, identifier, name, f"{path}:{number}", "name<TAB>id")
    if len(rows) != count:
        raise DataError(f"{path}:1: expected {count} names as the first line says, got {len(rows)}")
    return _vocabulary(rows, path)


def _openke_triples(path: Path, entity_count: int, relation_count: int) -> Triples:
    limits = np.array([entity_count, entity_count, relation_count])
    tables: list[Triples] = []
    count = -1
    for block in line_blocks(path):
        lines = decoded(block, path).split("\n")[:-1]
        first_line = block.first_line
        if count < 0:
            count = _count_line(iter([(first_line, lines.pop(0))]), path)
            first_line += 1
        tables.append(_openke_rows(lines, first_line, limits, path))
    if count < 0:
        raise DataError(f"{path}: expected the number of triples on the first line, got an empty file")
    table = np.concatenate(tables)
    if len(table) != count:
        raise DataError(f"{path}:1: expected {count} triples as the first line says, got {len(table)}")
    # OpenKE writes head, tail, relation.
    return np.ascontiguousarray(table[:, [0, 2, 1]])


def _openke_rows(lines: list[str], first_line: int, limits: NDArray[np.int64], path: Path) -> Triples:
    rows = [line.split() for line in lines]
    bad = next((place for place, row in enumerate(rows) if len(row) != 3 or not all(map(_is_number, row))), None)
    if bad is not None:
        raise DataError(f"{path}:{first_line + bad}: expected 3 ids (head, tail, relation), got {lines[bad][:100]!r}")
    table = np.array(rows, dtype=np.str_).reshape(-1, 3).astype(np.int64)
    outside = np.flatnonzero((table >= limits).any(axis=1))
    if len(outside):
        raise DataError(
            f"{path}:{first_line + outside[0]}: expected ids (head, tail, relation in this order) below "
            f"{', '.join(map(str, limits))}, got {lines[outside[0]]!r}"
        )
    return table.astype(np.int32)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _count_line(lines: Iterator[tuple[int, str]], path: Path) -> int:
    _, line = next(lines, (1, ""))
    first = line.strip(" \t\r")
    if not _is_number(first):
        raise DataError(f"{path}:1: expected the number of lines that follow, got {line[:100]!r}")
    return int(first)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """How the fields of a dict folder's triples are read: field to row of the vocabulary."""

    what: str
    entities: dict[str, int]
    relations: dict[str, int]

    def is_triple(self, line: str) -> bool:
        """Whether a line is a triple of known names."""
        head, relation, tail = [*line.split("\t"), "", "", ""][:3]
        return head in self.entities and relation in self.relations and tail in self.entities

    def fits(self, block: NameBlock) -> float:
        """The share of fields that have a meaning."""
        hits = sum(map(self.relations.__contains__, block.relations))
        hits += sum(map(self.entities.__contains__, [*block.heads, *block.tails]))
        return hits / (3 * len(block))


def read_dict_folder(folder: Path, name: str, files: dict[str, Path], skip_header: bool | None = None) -> Graph:
    """Read `entities.dict`, `relations.dict` (id<TAB>name) and splits that hold either the names or the ids.

    The ids of the two files stay what they are. Where a field could be both, it is a name.
    """
    entities = _dict_names(_need_file(folder, "entities.dict"))
    relations = _dict_names(_need_file(folder, "relations.dict"))
    if "train" not in files:
        raise DataError(f"{folder}: expected train.txt beside entities.dict, got none")
    for path in files.values():
        if format_suffix(path) not in TSV_SUFFIXES:
            raise DataError(f"{path}: expected a TSV file beside entities.dict, got {path.suffix}")
    meanings = (
        _Meaning("name", entities.index, relations.index),
        _Meaning("id", _by_number(entities), _by_number(relations)),
    )
    first = next(block for block in read_names(files["train"], None, skip_header) if len(block))
    # max() keeps the first of equals: names win.
    meaning = max(meanings, key=lambda candidate: candidate.fits(first))
    tables = {split: _dict_triples(path, meaning, skip_header) for split, path in files.items()}
    return graph_of_tables(name, entities, relations, tables)


def _dict_names(path: Path) -> Vocabulary:
    rows: dict[int, str] = {}
    for number, line in decoded_lines(path):
        identifier, _, name = line.partition("\t")
        _add_name(rows, identifier, name, f"{path}:{number}", "id<TAB>name")
    return _vocabulary(rows, path)


def _by_number(vocabulary: Vocabulary) -> dict[str, int]:
    return {str(identifier): identifier for identifier in range(len(vocabulary))}


def _add_name(rows: dict[int, str], identifier: str, name: str, place: str, expected: str) -> None:
    if not _is_number(identifier) or not name:
        raise DataError(f"{place}: expected {expected}, got {identifier!r} for the id and {name!r} for the name")
    if int(identifier) in rows:
        raise DataError(f"{place}: expected every id once, got {identifier} again")
    rows[int(identifier)] = name


def _vocabulary(rows: dict[int, str], path: Path) -> Vocabulary:
    if not rows:
        raise DataError(f"{path}: expected numbered names, got none")
    if max(rows) != len(rows) - 1:
        raise DataError(f"{path}: expected the ids 0 to {len(rows) - 1}, each once, got {max(rows)}")
    if len(set(rows.values())) != len(rows):
        raise DataError(f"{path}: expected every name once, got {len(rows) - len(set(rows.values()))} repeated")
    return Vocabulary(tuple(rows[identifier] for identifier in range(len(rows))))


def _dict_triples(path: Path, meaning: _Meaning, skip_header: bool | None) -> Triples:
    tables, rows_before = [], 1 if skip_header else 0
    for block in read_names(path, None, skip_header):
        if block.skipped_header is not None and meaning.is_triple(block.skipped_header):
            raise DataError(
                f"{path}:1: expected a header to skip, got a triple of known names: leave out --skip-header"
            )
        columns = (
            (block.heads, meaning.entities),
            (block.relations, meaning.relations),
            (block.tails, meaning.entities),
        )
        table = np.empty((len(block), 3), dtype=np.int32)
        for column, (names, index) in enumerate(columns):
            table[:, column] = np.fromiter((index.get(name, -1) for name in names), dtype=np.int32, count=len(block))
        unknown = np.flatnonzero((table < 0).any(axis=1))
        if len(unknown):
            row = int(unknown[0])
            fields = (block.heads[row], block.relations[row], block.tails[row])
            _refuse_unknown(fields, meaning, f"{path}:{rows_before + row + 1}")
        tables.append(table)
        rows_before += len(block)
    return np.concatenate(tables)


def _refuse_unknown(fields: tuple[str, str, str], meaning: _Meaning, place: str) -> None:
    head, relation, tail = fields
    what = meaning.what
    if relation not in meaning.relations:
        elsewhere = [str(column) for column, field in ((1, head), (3, tail)) if field in meaning.relations]
        hint = f"; column {elsewhere[0]} holds one: put head, relation, tail in this order" if elsewhere else ""
        raise DataError(f"{place}: expected a {what} of relations.dict in column 2, got {relation!r}{hint}")
    column, field = (1, head) if head not in meaning.entities else (3, tail)
    raise DataError(f"{place}: expected an entity's {what} of entities.dict in column {column}, got {field!r}")
