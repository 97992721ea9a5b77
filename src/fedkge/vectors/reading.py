"""Vectors to start from: by name, from a run directory or from a file that fedkge or another program wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np
from safetensors import SafetensorError, safe_open

from fedkge.configuration import Configuration
from fedkge.errors import DataError
from fedkge.federation.messages import Shared
from fedkge.federation.run import CONFIG, MODEL, RunDirectory, shape_of
from fedkge.graph import Graph, Vocabulary
from fedkge.models import make_scorer
from fedkge.models.tables import Table

Vectors: TypeAlias = Mapping[Shared, Mapping[str, Table]]
"""For entities and relations, a row for each name."""

KINDS: tuple[Shared, Shared] = ("entities", "relations")
SINGULAR: dict[Shared, str] = {"entities": "entity", "relations": "relation"}


def start_vectors(configuration: Configuration, graphs: Sequence[Graph]) -> Vectors | None:
    """The vectors that a run begins from, None where it draws them; checked for names and widths."""
    if not configuration.init:
        return None
    vectors = read_vectors(Path(configuration.init))
    if not any(used for used, _ in matches(vectors, graphs).values()):
        raise DataError(f"{configuration.init}: none of its names occurs in the data: are these of another graph?")
    scorer, dimension = make_scorer(configuration.model, shape_of(configuration)), configuration.dimension
    widths = {"entities": scorer.entity_width(dimension), "relations": scorer.relation_width(dimension)}
    for kind, rows in vectors.items():
        width = next((len(row) for row in rows.values()), widths[kind])
        if width != widths[kind]:
            raise DataError(
                f"{configuration.init}: expected {kind} of {widths[kind]} numbers "
                f"({scorer.name}, dimension {dimension}), got {width}; use the same model and dimension"
            )
    return vectors


def matches(vectors: Vectors, graphs: Sequence[Graph]) -> dict[Shared, tuple[int, int]]:
    """For each kind, how many of the names occur in the graphs and how many do not.

    >>> matches({"entities": {"a": np.zeros(2), "z": np.zeros(2)}}, [Graph.from_names("tiny", [("a", "r", "b")])])
    {'entities': (1, 1)}
    """
    counts: dict[Shared, tuple[int, int]] = {}
    for kind, rows in vectors.items():
        vocabularies: list[Vocabulary] = [graph.entities if kind == "entities" else graph.relations for graph in graphs]
        used = sum(any(name in names.index for names in vocabularies) for name in rows)
        counts[kind] = (used, len(rows) - used)
    return counts


def read_vectors(path: Path) -> Vectors:
    """Vectors by name from a run directory or a .safetensors, .parquet or word2vec .txt file.

    Where the clients of a run differ in a row, its mean over them is taken.
    """
    if path.name == MODEL and (path.parent / CONFIG).exists():
        path = path.parent
    if not path.exists():
        raise DataError(f"{path}: no such run directory or file of vectors")
    if path.is_dir():
        return _checked(_read_run(path), path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: expected a run directory or a file that ends in {', '.join(READERS)}")
    try:
        return _checked(reader(path), path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: could not be read as {path.suffix}: {error}") from error


def _checked(vectors: Vectors, path: Path) -> Vectors:
    if not any(vectors.values()):
        raise DataError(f"{path}: expected vectors, got none")
    for kind, rows in vectors.items():
        widths = {row.shape for row in rows.values()}
        if len(widths) > 1:
            raise DataError(f"{path}: expected {kind} of one width, got {sorted(shape[0] for shape in widths)}")
        for name, row in rows.items():
            if not np.isfinite(row).all():
                raise DataError(f"{path}: the vector of {name!r} holds a number that is not finite")
    return vectors


def _read_run(path: Path) -> Vectors:
    directory = RunDirectory(path)
    tensors, _ = directory.read_model()
    vocabularies = dict(zip(KINDS, directory.read_vocabularies(), strict=True))
    places: dict[Shared, str] = {"entities": "own", "relations": "relation_ids"}
    vectors: dict[Shared, Mapping[str, Table]] = {}
    for kind, names in vocabularies.items():
        if kind in tensors:
            vectors[kind] = dict(zip(names, tensors[kind], strict=True))
            continue
        found: dict[str, list[Table]] = {}
        for tensor, table in tensors.items():
            if tensor.startswith(f"{kind}/"):
                ids = tensors[f"{places[kind]}/{tensor.partition('/')[2]}"]
                for place, row in zip(ids.tolist(), table, strict=True):
                    found.setdefault(names[place], []).append(row)
        vectors[kind] = {name: np.mean(rows, axis=0, dtype=np.float32) for name, rows in found.items()}
    return vectors


def _read_safetensors(path: Path) -> Vectors:
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            kinds = [kind for kind in KINDS if kind in metadata and kind in file.keys()]  # noqa: SIM118 - not a dict
            if not kinds:
                raise DataError(
                    f"{path}: expected tables `entities` or `relations` with their names in the metadata, "
                    "as `fedkge export` writes them"
                )
            tables = {kind: (json.loads(metadata[kind]), file.get_tensor(kind)) for kind in kinds}
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path}: expected a safetensors file, got a damaged one ({error})") from error
    for kind, (names, table) in tables.items():
        if table.ndim != 2 or len(names) != len(table):
            raise DataError(f"{path}: expected a row of {kind} for each of {len(names)} names, got {table.shape}")
    return {kind: dict(zip(names, table, strict=True)) for kind, (names, table) in tables.items()}


def _read_parquet(path: Path) -> Vectors:
    import pyarrow as pa  # noqa: PLC0415 (heavy)
    import pyarrow.parquet as pq  # noqa: PLC0415

    vectors: dict[Shared, dict[str, Table]] = {}
    kinds = {word: kind for kind, word in SINGULAR.items()}
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["kind", "name", "vector"]):
                words, names = batch["kind"].to_pylist(), batch["name"].to_pylist()
                for word, name, vector in zip(words, names, batch["vector"], strict=True):
                    if word not in kinds or name is None or not vector.is_valid:
                        raise DataError(f"{path}: expected kind entity or relation, a name and a vector, got {word!r}")
                    row = np.asarray(vector.values, dtype=np.float32)
                    vectors.setdefault(kinds[word], {})[name] = row
    except (pa.ArrowException, KeyError) as error:
        raise DataError(f"{path}: expected Parquet with the columns kind, name and vector: {error}") from error
    return vectors


def _read_word2vec(path: Path) -> Vectors:
    vectors: dict[Shared, Mapping[str, Table]] = {"entities": dict(_words(path))}
    beside = relations_beside(path)
    if beside.exists():
        vectors["relations"] = dict(_words(beside))
    return vectors


def relations_beside(path: Path) -> Path:
    """The second word2vec file: a relation may be called like an entity, and may have another width.

    >>> relations_beside(Path("vectors.txt")).name
    'vectors.relations.txt'
    """
    return path.with_name(f"{path.stem}.relations{path.suffix}")


def _words(path: Path) -> Iterator[tuple[str, Table]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        header = file.readline().split()
        if len(header) != 2 or not all(part.isdigit() for part in header):
            raise DataError(f"{path}:1: expected word2vec text, which begins with two numbers: how many, how wide")
        count, width = map(int, header)
        number = 1
        for number, line in enumerate(file, start=2):
            name, *numbers = line.rstrip("\n").rstrip(" ").split(" ")
            try:
                row = np.array(numbers, dtype=np.float32)
            except ValueError as error:
                raise DataError(f"{path}:{number}: expected {width} numbers after the name ({error})") from error
            if len(row) != width:
                raise DataError(f"{path}:{number}: expected {width} numbers after the name, got {len(row)}")
            yield unquote(name), row
    if number - 1 != count:
        raise DataError(f"{path}: expected {count} vectors as its first line says, got {number - 1}")


READERS: dict[str, Callable[[Path], Vectors]] = {
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
    ".txt": _read_word2vec,
}
