"""Triples of names from one file: TSV, CSV and Parquet. RDF is in `rdf`, folders are in `folders`.

Names stay exactly what the file says: "NA", quotes and spaces mean nothing special, and a number is a string.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.base.plain_files import open_plain
from fedkge.base.registry import near
from fedkge.base.short_repr import short_repr
from fedkge.graph.headers import check_skipped, refuse_header
from fedkge.graph.limits import input_limits
from fedkge.graph.rdf import RDF_SUFFIXES, read_rdf_terms
from fedkge.graph.streams import COMPRESSIONS, LineBlock, decoded, decoded_lines, format_suffix, line_blocks

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
SEPARATORS = (",", ";", "\t", "|")
ROWS_PER_BLOCK = 100_000
_TAB, _LINE_FEED = 9, 10


@short_repr()
@dataclass(frozen=True, slots=True)
class NameBlock:
    """Some triples of a file as three lists of one length.

    `skipped_literals` counts what RDF left out; `skipped_header` is the line of a TSV file that was skipped, if any.
    """

    heads: Sequence[str]
    relations: Sequence[str]
    tails: Sequence[str]
    skipped_literals: int = 0
    skipped_header: str | None = None

    def __len__(self) -> int:
        return len(self.relations)


def read_names(path: Path, columns: Columns | None = None, skip_header: bool | None = None) -> Iterator[NameBlock]:
    """The triples of one file, block by block; the suffix says the format.

    `columns` is for CSV and Parquet. `skip_header` is for TSV, which has no header: True skips the first line, False
    reads it as a triple, and None refuses it where its words say that it is a header.

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
    if skip_header is not None and suffix not in TSV_SUFFIXES:
        raise ConfigurationError(
            f"{path}: skip-header is for TSV files only (CSV and Parquet always have a header); got a {suffix} file"
        )
    empty = True
    for block in reader(path, columns) if suffix not in TSV_SUFFIXES else read_tsv(path, skip_header):
        empty = empty and not len(block) and not block.skipped_literals
        yield block
    if empty:
        raise DataError(f"{path}: expected triples, got {'nothing but a header' if skip_header else 'an empty file'}")


def read_tsv(path: Path, skip_header: bool | None = None) -> Iterator[NameBlock]:
    """Lines of head, relation, tail with one TAB between, and no quoting; see `read_names` for `skip_header`."""
    for number, whole in enumerate(line_blocks(path)):
        block, header = _without_header(whole, path) if skip_header and not number else (whole, None)
        _check_fields(block, path)
        fields = decoded(block, path).replace("\n", "\t").split("\t")
        fields.pop()
        if skip_header is None and not number:
            refuse_header(fields, path)
        yield NameBlock(fields[0::3], fields[1::3], fields[2::3], skipped_header=header)


def _without_header(block: LineBlock, path: Path) -> tuple[LineBlock, str]:
    """The first block without its first line, and that line."""
    first, _, rest = block.content.partition(b"\n")
    header = decoded(LineBlock(first, 1), path).removesuffix("\r")
    check_skipped(header, path)
    return LineBlock(rest, 2), header


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
        if hint and any(line.count(mark) == 2 for mark in ",;|"):
            hint += ", or name the file .csv and give it a header such as head,relation,tail"
        raise DataError(f"{place}: expected 3 fields (head, relation, tail), got {len(fields)}: {line[:100]!r}{hint}")
    for what, field in zip(KNOWN_COLUMNS[0], fields, strict=True):
        if not field:
            raise DataError(f"{place}: expected a {what}, got a blank field: {line[:100]!r}")


def read_csv(path: Path, columns: Columns | None = None) -> Iterator[NameBlock]:
    """Rows under a header, quoted as RFC 4180 says; further columns are ignored.

    Fields are separated by commas; by semicolons, tabs or bars where only then the header has the columns.
    """
    lines = (line for _, line in decoded_lines(path))
    first = next(lines, "")
    separator = find_separator(first, columns)
    rows = csv.reader((line + "\n" for line in chain([first], lines)), delimiter=separator, strict=True)
    width, positions = 0, (0, 0, 0)
    names: tuple[list[str], list[str], list[str]] = ([], [], [])
    try:
        for row in rows:
            place = f"{path}:{rows.line_num}"
            if not width and not row:
                continue
            if not width:
                width, positions = len(row), find_columns(row, columns, place)
                continue
            if not row:
                continue
            if len(row) != width:
                raise DataError(
                    f"{place}: expected {width} fields separated by {separator!r} as in the header, got {len(row)}"
                )
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
        with open_plain(path) as plain:
            file_bytes = os.fstat(plain.fileno()).st_size
        schema = pyarrow.parquet.read_schema(path)
        wanted = []
        for position in find_columns(schema.names, columns, str(path)):
            wanted.append(schema.names[position])
            _check_kind(schema.field(position).type, f"{path}: column {wanted[-1]}")
        # Each different name comes once, so that a long one which is repeated is measured before it fills the memory.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=wanted) as file:
            first_row, produced, limits = 1, 0, input_limits()
            for batch in file.iter_batches(batch_size=ROWS_PER_BLOCK, columns=wanted):
                produced += sum(_bytes_of(batch.column(name)) for name in wanted)
                limits.check_decompressed(path, file_bytes, produced)
                heads, relations, tails = (
                    _strings(batch.column(name), f"{path}: column {name}", first_row) for name in wanted
                )
                yield NameBlock(heads, relations, tails)
                first_row += len(batch)
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:  # a column's name may be no UTF-8
        raise DataError(f"{path}: expected a readable Parquet file, got: {error}") from error


def _bytes_of(values: Any) -> int:
    """How many bytes a column's names have, each as often as it occurs."""
    import pyarrow.compute  # noqa: PLC0415
    from pyarrow import types  # noqa: PLC0415

    kind = values.type
    if not types.is_dictionary(kind) or not (
        types.is_string(kind.value_type) or types.is_large_string(kind.value_type)
    ):
        return int(values.nbytes)
    lengths = pyarrow.compute.binary_length(values.dictionary).take(values.indices)
    return len(values) + int(pyarrow.compute.sum(lengths).as_py() or 0)


def _check_kind(kind: Any, place: str) -> None:
    from pyarrow import types  # noqa: PLC0415

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
        raise DataError(f"{place}: expected strings or whole numbers, got {kind}")


def _strings(values: Any, place: str, first_row: int) -> list[str]:
    import pyarrow  # noqa: PLC0415

    strings = values.cast(pyarrow.string())
    try:
        names: list[str | None] = strings.to_pylist()
    except UnicodeDecodeError as error:
        row, got = _first_not_text(strings), error.object[error.start : error.start + 1]
        raise DataError(f"{place}, row {first_row + row}: expected UTF-8 text, got the byte {got!r}") from error
    filled = [name for name in names if name]
    if len(filled) != len(names):
        bad = next(row for row, name in enumerate(names) if not name)
        raise DataError(f"{place}, row {first_row + bad}: expected a name, got {names[bad]!r}")
    return filled


def _first_not_text(strings: Any) -> int:
    """The place of the first value that is not UTF-8."""
    for place, value in enumerate(strings):
        try:
            value.as_py()
        except UnicodeDecodeError:
            return place
    return 0


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
    found = _places(header, columns)
    if found is not None:
        return found
    expected = " or ".join("/".join(candidate) for candidate in ((columns,) if columns else KNOWN_COLUMNS))
    close = [name for wanted in columns or () for name in near(wanted, header, most=1) if wanted not in header]
    hint = f"did you mean {', '.join(close)}?" if close else "name them with --columns HEAD,RELATION,TAIL"
    raise DataError(f"{place}: expected the columns {expected}, each once; got {', '.join(header)!r}: {hint}")


def _places(header: Sequence[str], columns: Columns | None) -> tuple[int, int, int] | None:
    seen = list(header) if columns else [name.strip().casefold() for name in header]
    for candidate in (columns,) if columns else KNOWN_COLUMNS:
        if all(seen.count(name) == 1 for name in candidate):
            head, relation, tail = (seen.index(name) for name in candidate)
            return head, relation, tail
    return None


def find_separator(line: str, columns: Columns | None) -> str:
    """What separates the fields of a CSV file, by its header: a comma, unless only another gives the columns.

    >>> find_separator("head,relation,tail", None), find_separator("id;head;relation;tail", None)
    (',', ';')
    """
    for separator in SEPARATORS:
        try:
            header = next(csv.reader([line], delimiter=separator, strict=True), [])
        except csv.Error:
            continue
        if _places(header, columns):
            return separator
    return SEPARATORS[0]


def read_rdf(path: Path, _columns: Columns | None = None) -> Iterator[NameBlock]:
    """N-Triples and Turtle: IRIs and blank nodes are entities; triples with a literal are skipped and counted."""
    for subjects, predicates, objects, skipped in read_rdf_terms(path, ROWS_PER_BLOCK):
        yield NameBlock(subjects, predicates, objects, skipped)


FORMATS: dict[str, Callable[[Path, Columns | None], Iterator[NameBlock]]] = {
    **dict.fromkeys(TSV_SUFFIXES, lambda path, _: read_tsv(path)),
    **dict.fromkeys(CSV_SUFFIXES, read_csv),
    **dict.fromkeys(PARQUET_SUFFIXES, read_parquet),
    **dict.fromkeys(RDF_SUFFIXES, read_rdf),
}
