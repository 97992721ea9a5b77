"""Folders with one file per split, and single files. Folders that bring their own ids are in `numbered`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedkge.base.errors import DataError
from fedkge.graph.building import GraphBuilder
from fedkge.graph.graph import HEAD, RELATION, SPLITS, TAIL, Graph
from fedkge.graph.numbered import is_dict_folder, is_openke_folder, read_dict_folder, read_openke_folder
from fedkge.graph.readers import FORMATS, Columns
from fedkge.graph.streams import COMPRESSIONS, format_suffix

SPLIT_NAMES = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}


def read_path(path: Path, columns: Columns | None = None, skip_header: bool | None = None) -> Graph:
    """Read a graph from a folder, or from one file whose triples are all for training.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.csv").write_text('head,relation,tail\\n"Doe, Jane",has,NA\\n')
    ...     read_path(Path(folder)).entities.names
    ('Doe, Jane', 'NA')
    """
    if path.is_dir():
        return read_folder(path, columns, skip_header)
    builder = GraphBuilder()
    builder.add_file("train", path, columns, skip_header)
    return builder.build(path.name.split(".")[0])


def read_folder(folder: Path, columns: Columns | None = None, skip_header: bool | None = None) -> Graph:
    """Read a folder: `entities.dict` with ids, plain files per split, or OpenKE's `train2id.txt`."""
    name = folder.resolve().name
    files = split_files(folder)
    if is_dict_folder(folder):
        return read_dict_folder(folder, name, files, skip_header)
    if "train" not in files:
        if is_openke_folder(folder):
            return read_openke_folder(folder, name)
        raise DataError(
            f"{folder}: expected train with one of {', '.join(FORMATS)} (text also with {', '.join(COMPRESSIONS)}) "
            f"or train2id.txt, got {_listing(folder)}"
        )
    builder = GraphBuilder()
    for split, path in files.items():
        builder.add_file(split, path, columns, skip_header)
    graph = builder.build(name)
    check_column_order(graph, files)
    return graph


def split_files(folder: Path) -> dict[str, Path]:
    """The file of each split that the folder has; two files for one split are an error."""
    files: dict[str, Path] = {}
    for split in SPLITS:
        found = [path for path in sorted(folder.iterdir()) if _is_split(path, split)]
        if len(found) > 1:
            raise DataError(
                f"{folder}: expected one file for {split}, got {', '.join(path.name for path in found)}: keep one"
            )
        if found:
            files[split] = found[0]
    return files


def _is_split(path: Path, split: str) -> bool:
    stem = path.name.lower().split(".")[0]
    return stem in SPLIT_NAMES[split] and format_suffix(path) in FORMATS and path.is_file()


def _listing(folder: Path, most: int = 8) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else "an empty folder"


def check_column_order(graph: Graph, files: dict[str, Path]) -> None:
    """Refuse held-out files whose columns stand in another order than those of train.

    It shows when no relation of the file is a relation of train, but another column matches.
    """
    train_relations = _names_in(graph, "train", RELATION)
    for split in SPLITS[1:]:
        relations = _names_in(graph, split, RELATION)
        if split not in files or train_relations & relations:
            continue
        for column in (HEAD, TAIL):
            train_names, names = _names_in(graph, "train", column), _names_in(graph, split, column)
            if _mostly_within(names, train_relations) or _mostly_within(relations, train_names):
                raise DataError(
                    f"{files[split]}: expected the column order of {files['train'].name} (head, relation, tail), got "
                    f"no relation of it in column 2, while column 2 of one file matches column {column + 1} of the "
                    "other: reorder the columns"
                )


def _names_in(graph: Graph, split: str, column: int) -> set[str]:
    vocabulary = graph.relations if column == RELATION else graph.entities
    used = np.flatnonzero(np.bincount(graph.split(split)[:, column]))
    return {vocabulary[identifier] for identifier in used.tolist()}


def _mostly_within(names: set[str], known: set[str]) -> bool:
    return 2 * len(names & known) > len(names)
