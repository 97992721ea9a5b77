"""Vectors to start from: by name, from a run directory or from a file that fedkge or another program wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
from safetensors import SafetensorError, safe_open

from fedkge.base.errors import DataError, RunError
from fedkge.base.plain_files import open_plain, parse_json
from fedkge.configuration import Configuration
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.streams import decoded_lines
from fedkge.models.tables import Table
from fedkge.runs.directory import CONFIG, MODEL, RunDirectory
from fedkge.runs.round import Shared
from fedkge.runs.run import scorer_of
from fedkge.store.durable_files import read_tensor

Vectors: TypeAlias = Mapping[Shared, Mapping[str, Table]]
"""For entities and relations, a row for each name."""

KINDS: tuple[Shared, Shared] = ("entities", "relations")
SINGULAR: dict[Shared, str] = {"entities": "entity", "relations": "relation"}


def start_vectors(configuration: Configuration, graphs: Sequence[Graph]) -> Vectors | None:
    """The vectors that a run begins from, None where it draws them; checked for names and widths."""
    if not configuration.training.init:
        return None
    vectors = read_vectors(Path(configuration.training.init))
    if not any(used for used, _ in matches(vectors, graphs).values()):
        raise DataError(
            f"{configuration.training.init}: none of its names occurs in the data: are these of another graph?"
        )
    scorer, dimension = scorer_of(configuration), configuration.model.dimension
    widths = {"entities": scorer.entity_width(dimension), "relations": scorer.relation_width(dimension)}
    for kind, rows in vectors.items():
        width = next((len(row) for row in rows.values()), widths[kind])
        if width != widths[kind]:
            raise DataError(
                f"{configuration.training.init}: expected {kind} of {widths[kind]} numbers "
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
                raise DataError(f"{path}: the vector of {name!r} holds a number that is not finite in single precision")
    return vectors


def _read_run(path: Path) -> Vectors:
    directory = RunDirectory(path)
    tensors, _ = directory.read_model()
    vocabularies = dict(zip(KINDS, directory.read_vocabularies(), strict=True))
    places: dict[Shared, str] = {"entities": "own", "relations": "relation_ids"}
    vectors: dict[Shared, Mapping[str, Table]] = {}
    try:
        for kind, names in vocabularies.items():
            if kind in tensors:
                vectors[kind] = dict(zip(names, _rows(tensors[kind]), strict=True))
                continue
            found: dict[str, list[Table]] = {}
            for tensor, table in tensors.items():
                if tensor.startswith(f"{kind}/"):
                    ids = tensors[f"{places[kind]}/{tensor.partition('/')[2]}"]
                    for place, row in zip(ids.tolist(), _rows(table), strict=True):
                        found.setdefault(names[place], []).append(row)
            vectors[kind] = {name: np.mean(rows, axis=0, dtype=np.float32) for name, rows in found.items()}
    except (LookupError, ValueError, TypeError) as error:
        raise RunError(f"{path / MODEL}: expected rows for the names of the run, got others ({error})") from error
    return vectors


def _rows(table: Table) -> Table:
    """A table of vectors in single precision; a ValueError for any other array. What is too large becomes infinite."""
    if table.ndim != 2:
        raise ValueError(f"expected a table of vectors, got shape {table.shape}")
    with np.errstate(over="ignore"):
        return table.astype(np.float32, copy=False)


class _Named:
    """Collects rows by name; a name that comes twice is an error with both places, since only one row could be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Table] = {}
        self._places: dict[str, int] = {}

    def add(self, name: str, row: Table, place: int, unit: str = "row") -> None:
        """Take one row; `place` counts from 1."""
        if name in self._places:
            raise DataError(
                f"{self._path}: expected every name once, got the name of {unit} {self._places[name]} again in {unit} "
                f"{place}: remove one of the two"
            )
        self.rows[name], self._places[name] = row, place


def _read_safetensors(path: Path) -> Vectors:
    vectors: dict[Shared, Mapping[str, Table]] = {}
    try:
        open_plain(path).close()
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            kinds = [kind for kind in KINDS if kind in metadata and kind in file.keys()]  # noqa: SIM118 - not a dict
            if not kinds:
                raise DataError(
                    f"{path}: expected tables `entities` or `relations` with their names in the metadata, "
                    "as `fedkge export` writes them"
                )
            tables = {kind: (parse_json(metadata[kind]), _rows(read_tensor(file, kind))) for kind in kinds}
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path}: expected a safetensors file of vectors, got a damaged one ({error})") from error
    for kind, (names, table) in tables.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{path}: expected a JSON list of names for {kind} in the metadata, got {names!r:.60}")
        if len(names) != len(table):
            raise DataError(f"{path}: expected a row of {kind} for each of {len(names)} names, got {table.shape}")
        named = _Named(path)
        for place, (name, row) in enumerate(zip(names, table, strict=True), start=1):
            named.add(name, row, place, f"row of {kind}")
        vectors[kind] = named.rows
    return vectors


def _read_parquet(path: Path) -> Vectors:
    import pyarrow as pa  # noqa: PLC0415 (heavy)
    import pyarrow.parquet as pq  # noqa: PLC0415

    named: dict[Shared, _Named] = {}
    kinds = {word: kind for kind, word in SINGULAR.items()}
    first = 1
    try:
        open_plain(path).close()
        with pq.ParquetFile(path) as file:
            _check_columns(file.schema_arrow, path)
            for batch in file.iter_batches(columns=["kind", "name", "vector"]):
                words, names = batch["kind"].to_pylist(), batch["name"].to_pylist()
                for row, (word, name, vector) in enumerate(zip(words, names, batch["vector"], strict=True), first):
                    if word not in kinds or not name or not vector.is_valid or vector.values.null_count:
                        raise DataError(
                            f"{path}, row {row}: expected kind entity or relation, a name and a vector without gaps, "
                            f"got {word!r}"
                        )
                    with np.errstate(over="ignore"):
                        numbers = np.asarray(vector.values, dtype=np.float32)
                    named.setdefault(kinds[word], _Named(path)).add(name, numbers, row)
                first += len(batch)
    except (pa.ArrowException, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected Parquet with the columns kind, name and vector: {error}") from error
    return {kind: rows.rows for kind, rows in named.items()}


def _check_columns(schema: Any, path: Path) -> None:
    """Words, words, and lists of numbers; a KeyError where a column is missing."""
    from pyarrow import types  # noqa: PLC0415

    for name in ("kind", "name"):
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not (types.is_string(kind) or types.is_large_string(kind)):
            raise DataError(f"{path}: expected words in the column {name}, got {kind}")
    kind = schema.field("vector").type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not lists or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise DataError(f"{path}: expected a list of numbers in the column vector, got {kind}")


def _read_word2vec(path: Path) -> Vectors:
    vectors: dict[Shared, Mapping[str, Table]] = {"entities": _words(path)}
    beside = relations_beside(path)
    if beside.exists():
        vectors["relations"] = _words(beside)
    return vectors


def relations_beside(path: Path) -> Path:
    """The second word2vec file: a relation may be called like an entity, and may have another width.

    >>> relations_beside(Path("vectors.txt")).name
    'vectors.relations.txt'
    """
    return path.with_name(f"{path.stem}.relations{path.suffix}")


def _words(path: Path) -> Mapping[str, Table]:
    lines = decoded_lines(path)
    header = next(lines, (1, ""))[1].split()
    if len(header) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in header):
        raise DataError(f"{path}:1: expected word2vec text, which begins with two numbers: how many, how wide")
    count, width = map(int, header)
    named = _Named(path)
    for number, line in lines:
        name, *numbers = line.rstrip(" ").split(" ")
        try:
            with np.errstate(over="ignore"):
                row = np.array(numbers, dtype=np.float32)
        except ValueError as error:
            raise DataError(f"{path}:{number}: expected {width} numbers after the name ({error})") from error
        if len(row) != width:
            raise DataError(f"{path}:{number}: expected {width} numbers after the name, got {len(row)}")
        named.add(unquote(name), row, number, "line")
    if len(named.rows) != count:
        raise DataError(f"{path}: expected {count} vectors as its first line says, got {len(named.rows)}")
    return named.rows


READERS: dict[str, Callable[[Path], Vectors]] = {
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
    ".txt": _read_word2vec,
}
