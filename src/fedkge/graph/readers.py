"""Triples of names from one file: TSV, CSV and Parquet. RDF is in `rdf`, folders are in `folders`.

Names stay exactly what the file says: "NA", quotes and spaces mean nothing special, and a number is a string.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fedkge.errors import ConfigurationError, DataError
from fedkge.graph.rdf import RDF_SUFFIXES, read_rdf_terms
from fedkge.graph.streams import COMPRESSIONS, LineBlock, decoded, decoded_lines, format_suffix, line_blocks
from fedkge.registry import near

Columns: TypeAlias = tuple[str, str, str]
"""The names of the head, relation and tail columns."""

TSV_SUFFIXES = (".txt", ".tsv")
CSV_SUFFIXES = (".csv",)
PARQUET_SUFFIXES = (".parquet", ".pq")
KNOWN_COLUMNS: tuple[Columns, ...] = (
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("source", "relation", "target"),
    ("h", "r", "t"),
)
ROWS_PER_BLOCK = 100_000
_TAB, _LINE_FEED = 9, 10


@dataclass(frozen=True, slots=True)
class NameBlock:
    """Some triples of a file as three lists of one length; `skipped_literals` counts what RDF left out."""

    heads: Sequence[str]
    relations: Sequence[str]
    tails: Sequence[str]
    skipped_literals: int = 0

    def __len__(self) -> int:
        return len(self.relations)


def read_names(path: Path, columns: Columns | None = None) -> Iterator[NameBlock]:
    """The triples of one file, block by block; the suffix says the format.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "train.tsv")
    ...     _ = file.write_text("aspirin\\ttreats\\theadache\\n")
    ...     next(read_names(file)).tails
    ['headache']
    """
    suffix = format_suffix(path)
    reader = FORMATS.get(suffix)
    if reader is None:
        raise DataError(
            f"{path}: expected a file that ends in {', '.join(FORMATS)} "
            f"(text also with {', '.join(COMPRESSIONS)}), got {path.suffix or 'no suffix'!r}"
        )
    if columns is not None and suffix not in CSV_SUFFIXES + PARQUET_SUFFIXES:
        raise ConfigurationError(f"{path}: columns can be chosen for CSV and Parquet only; got a {suffix} file")
    empty = True
    for block in reader(path, columns):
        empty = False
        yield block
    if empty:
        raise DataError(f"{path}: expected triples, got an empty file")


def read_tsv(path: Path, _columns: Columns | None = None) -> Iterator[NameBlock]:
    """Lines of head, relation, tail with one TAB between: no header, no quoting."""
    for block in line_blocks(path):
        _check_fields(block, path)
        fields = decoded(block, path).replace("\n", "\t").split("\t")
        fields.pop()
        yield NameBlock(fields[0::3], fields[1::3], fields[2::3])


def _check_fields(block: LineBlock, path: Path) -> None:
    """Three filled fields on every line, seen in the order of the separators alone."""
    content = np.frombuffer(block.content, dtype=np.uint8)
    separators = np.flatnonzero((content == _TAB) | (content == _LINE_FEED))
    kinds = content[separators]
    pattern = np.resize(np.array([_TAB, _TAB, _LINE_FEED], dtype=np.uint8), len(kinds))
    regular = len(kinds) % 3 == 0 and bool((kinds == pattern).all())
    blank = bool((np.diff(separators, prepend=-1) == 1).any()) or b"\t\r\n" in block.content
    if regular and not blank:
        return
    for number, line in enumerate(decoded(block, path).split("\n"), start=block.first_line):
        _check_line(line, f"{path}:{number}")


def _check_line(line: str, place: str) -> None:
    fields = line.split("\t")
    if len(fields) != 3:
        hint = "; separate the fields with one TAB" if len(fields) == 1 and line.strip() else ""
        raise DataError(f"{place}: expected 3 fields (head, relation, tail), got {len(fields)}: {line[:100]!r}{hint}")
    for what, field in zip(KNOWN_COLUMNS[0], fields, strict=True):
        if not field:
            raise DataError(f"{place}: expected a {what}, got a blank field: {line[:100]!r}")


def read_csv(path: Path, columns: Columns | None = None) -> Iterator[NameBlock]:
    """Comma-separated rows under a header, quoted as RFC 4180 says; further columns are ignored."""
    rows = csv.reader((line + "\n" for _, line in decoded_lines(path)), strict=True)
    width, positions = 0, (0, 0, 0)
    names: tuple[list[str], list[str], list[str]] = ([], [], [])
    try:
        for row in rows:
            place = f"{path}:{rows.line_num}"
            if not width:
                width, positions = len(row), find_columns(row, columns, place)
                continue
            if not row:
                continue
            if len(row) != width:
                raise DataError(f"{place}: expected {width} fields as in the header, got {len(row)}")
            for what, column, position in zip(KNOWN_COLUMNS[0], names, positions, strict=True):
                if not row[position]:
                    raise DataError(f"{place}: expected a {what}, got a blank field")
                column.append(row[position])
            if len(names[0]) == ROWS_PER_BLOCK:
                yield NameBlock(*names)
                names = ([], [], [])
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: expected a row of CSV, got: {error}") from error
    if names[0]:
        yield NameBlock(*names)


def read_parquet(path: Path, columns: Columns | None = None) -> Iterator[NameBlock]:
    """Three columns of strings or whole numbers, found by name; further columns are not read."""
    import pyarrow  # noqa: PLC0415 (a slow import that most graphs do not need)
    import pyarrow.parquet  # noqa: PLC0415

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            header = file.schema_arrow.names
            wanted = [header[position] for position in find_columns(header, columns, str(path))]
            first_row = 1
            for batch in file.iter_batches(batch_size=ROWS_PER_BLOCK, columns=wanted):
                heads, relations, tails = (
                    _strings(batch.column(name), f"{path}: column {name}", first_row) for name in wanted
                )
                yield NameBlock(heads, relations, tails)
                first_row += len(batch)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: expected a readable Parquet file, got: {error}") from error


def _strings(values: Any, place: str, first_row: int) -> list[str]:
    import pyarrow  # noqa: PLC0415
    from pyarrow import types  # noqa: PLC0415

    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
        raise DataError(f"{place}: expected strings or whole numbers, got {kind}")
    names: list[str | None] = values.cast(pyarrow.string()).to_pylist()
    filled = [name for name in names if name]
    if len(filled) != len(names):
        bad = next(row for row, name in enumerate(names) if not name)
        raise DataError(f"{place}, row {first_row + bad}: expected a name, got {names[bad]!r}")
    return filled


def parse_columns(text: str) -> Columns | None:
    """Column names as options give them, or None for none.

    >>> parse_columns("who,does,whom"), parse_columns("")
    (('who', 'does', 'whom'), None)
    """
    if not text:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 3 or not all(names) or len(set(names)) != 3:
        raise ConfigurationError(f"columns: expected three different names like head,relation,tail; got {text!r}")
    return names[0], names[1], names[2]


def find_columns(header: Sequence[str], columns: Columns | None, place: str) -> tuple[int, int, int]:
    """Where head, relation and tail stand: by the chosen names exactly, else by the usual names in any case.

    >>> find_columns(["id", "Subject", "Object", "Predicate"], None, "graph.csv")
    (1, 3, 2)
    """
    seen = list(header) if columns else [name.strip().casefold() for name in header]
    for candidate in (columns,) if columns else KNOWN_COLUMNS:
        if all(seen.count(name) == 1 for name in candidate):
            head, relation, tail = (seen.index(name) for name in candidate)
            return head, relation, tail
    expected = " or ".join("/".join(candidate) for candidate in ((columns,) if columns else KNOWN_COLUMNS))
    close = [name for wanted in columns or () for name in near(wanted, header, most=1) if wanted not in header]
    hint = f"did you mean {', '.join(close)}?" if close else "name them with --columns HEAD,RELATION,TAIL"
    raise DataError(f"{place}: expected the columns {expected}, each once; got {', '.join(header)!r}: {hint}")


def read_rdf(path: Path, _columns: Columns | None = None) -> Iterator[NameBlock]:
    """N-Triples and Turtle: IRIs and blank nodes are entities; triples with a literal are skipped and counted."""
    for subjects, predicates, objects, skipped in read_rdf_terms(path, ROWS_PER_BLOCK):
        yield NameBlock(subjects, predicates, objects, skipped)


FORMATS: dict[str, Callable[[Path, Columns | None], Iterator[NameBlock]]] = {
    **dict.fromkeys(TSV_SUFFIXES, read_tsv),
    **dict.fromkeys(CSV_SUFFIXES, read_csv),
    **dict.fromkeys(PARQUET_SUFFIXES, read_parquet),
    **dict.fromkeys(RDF_SUFFIXES, read_rdf),
}
