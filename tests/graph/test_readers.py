"""One file at a time: every format, and everything that can be wrong with a file."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph.building import GraphBuilder, first_occurrences
from fedkge.graph.folders import read_path
from fedkge.graph.graph import Graph, distinct_triples
from fedkge.graph.readers import Columns, read_names
from fedkge.graph.streams import line_blocks, text_sha256

Rows = list[tuple[str, str, str]]
ODD: Rows = [
    ("NA", '"r"', " lead"),
    ("null", "nan", "trail "),
    ("1", "2", "3"),
    ("é", "'", 'a"b'),
    ("#x", "r,s", "\\N"),
]


def rows_of(path: Path, columns: Columns | None = None) -> Rows:
    return [
        row
        for block in read_names(path, columns)
        for row in zip(block.heads, block.relations, block.tails, strict=True)
    ]


def tsv(rows: Rows) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        content = gzip.compress(content)
    elif name.endswith(".xz"):
        content = lzma.compress(content)
    elif name.endswith(".zst"):
        content = pyarrow.compress(content, codec="zstd", asbytes=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.TSV", "a.txt.gz", "a.tsv.xz", "a.txt.zst"])
def test_tsv_keeps_every_string_as_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert rows_of(write(tmp_path, path.name, tsv(ODD))) == ODD


NAME = st.text(st.characters(exclude_characters="\t\n\r\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(rows=st.lists(st.tuples(NAME, NAME, NAME), min_size=1, max_size=30), suffix=st.sampled_from(["", ".gz", ".zst"]))
def test_what_is_written_as_tsv_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: Rows, suffix: str) -> None:
    path = write(tmp_path_factory.mktemp("tsv"), "graph.txt" + suffix, tsv(rows))
    assert rows_of(path) == rows
    graph, twin = read_path(path), Graph.from_names("graph", rows)
    assert list(graph.entities) == list(twin.entities)
    assert list(graph.relations) == list(twin.relations)
    assert graph.train.tolist() == twin.train.tolist()
    assert graph.removed_duplicates == twin.removed_duplicates


@given(content=st.text("ab\t\n\r", max_size=60).map(str.encode), block_bytes=st.integers(1, 20))
def test_blocks_cut_nowhere_but_between_lines(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block_bytes: int
) -> None:
    path = write(tmp_path_factory.mktemp("blocks"), "x.txt", content)
    blocks = list(line_blocks(path, block_bytes))
    kept = content.rstrip(b"\r\n")
    assert b"".join(block.content for block in blocks).rstrip(b"\r\n") == kept
    expected_line = 1
    for block in blocks:
        assert block.content.endswith(b"\n")
        assert block.first_line == expected_line
        expected_line += block.content.count(b"\n")
    assert expected_line == (kept.count(b"\n") + 2 if kept else 1)


def test_crlf_byte_order_mark_and_blank_end_are_accepted(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfa\tr\tb\r\nb\tr\ta\r\n\r\n\n"
    assert rows_of(write(tmp_path, "a.txt", content)) == [("a", "r", "b"), ("b", "r", "a")]
    assert rows_of(write(tmp_path, "b.txt", b"a\tr\tb")) == [("a", "r", "b")]


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b"a\tr\tb\na\tr\n", 2, "expected 3 fields (head, relation, tail), got 2"),
        (b"a\tr\tb\tc\n", 1, "got 4"),
        (b"a\tr\nb\tr\tc\td\n", 1, "got 2"),
        (b"a r b\n", 1, "separate the fields with one TAB"),
        (b"a\tr\tb\n\na\tr\tc\n", 2, "got 1"),
        (b"a\tr\tb\na\t\tb\n", 2, "expected a relation, got a blank field"),
        (b"a\tr\t\r\na\tr\tb\r\n", 1, "expected a tail, got a blank field"),
        (b"\tr\tb\n", 1, "expected a head, got a blank field"),
        (b"a\tr\tb\na\tr\t\xff\n", 2, "expected UTF-8 text, got the byte b'\\xff'"),
        (b"a\tr\tb\na\xfe\n", 2, "expected UTF-8"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, content: bytes, line: int, said: str) -> None:
    path = write(tmp_path, "bad.txt", content)
    with pytest.raises(DataError) as caught:
        rows_of(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert said in str(caught.value)


def test_line_numbers_go_on_from_block_to_block(tmp_path: Path) -> None:
    good = 600_000  # more than one block of 4 MiB
    path = write(tmp_path, "long.txt", b"ab\tr\tcde\n" * good + b"oops\n")
    assert path.stat().st_size > 4 * 1024 * 1024
    with pytest.raises(DataError, match=f":{good + 1}: expected 3 fields"):
        rows_of(path)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.nt", "a.ttl", "a.txt.xz"])
@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_said_to_be_empty(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(DataError, match="empty file"):
        rows_of(write(tmp_path, name, content))


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.xz", "a.txt.zst", "a.nt.xz", "a.parquet"])
@pytest.mark.parametrize("damage", ["cut", "rubbish"])
def test_a_damaged_file_is_a_data_error_that_names_it(tmp_path: Path, name: str, damage: str) -> None:
    path = write(tmp_path, name, tsv([(f"a{i * 7919}", "r", f"b{i}") for i in range(1000)]))
    path.write_bytes(path.read_bytes()[:-30] if damage == "cut" else b"this is plain text\n" * 9)
    with pytest.raises(DataError, match=name):
        rows_of(path)


def test_an_unknown_suffix_and_a_missing_file_are_data_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ends in \.txt, \.tsv, \.csv"):
        rows_of(write(tmp_path, "a.xlsx", b"x"))
    with pytest.raises(DataError, match="no such file"):
        rows_of(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("head,relation,tail", None),
        ("Subject,Predicate,Object", None),
        ("who,does,whom", ("who", "does", "whom")),
    ],
)
def test_csv_columns_by_name(tmp_path: Path, header: str, columns: Columns | None) -> None:
    head, relation, tail = header.split(",")
    content = f'{tail},note,{head},{relation}\n"b, c",x,NA,"says ""hi"""\r\n\nz,,"two\nlines",r\n'.encode()
    expected = [("NA", 'says "hi"', "b, c"), ("two\nlines", "r", "z")]
    assert rows_of(write(tmp_path, "a.csv", content), columns) == expected
    assert rows_of(write(tmp_path, "a.csv.gz", content), columns) == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"head,relation,tail\na,r\n", ":2: expected 3 fields separated by ',' as in the header, got 2"),
        (b"head,relation,tail\na,r,\n", ":2: expected a tail, got a blank field"),
        (b'head,relation,tail\na,r,"b"c\n', ":2: expected a row of CSV"),
        (b'head,relation,tail\na,r,"b\n', "expected a row of CSV"),
        (b"head,relation,tail\na,r,\xff\n", ":2: expected UTF-8"),
        (b"a,r,b\n", ":1: expected the columns head/relation/tail or subject/predicate/object"),
        (b"head,relation,tail,tail\na,r,b,c\n", "each once"),
        (b"head,relation,tail\n", "empty file"),
    ],
)
def test_malformed_csv(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(DataError) as caught:
        rows_of(write(tmp_path, "a.csv", content))
    assert said in str(caught.value)


def test_a_chosen_column_that_is_not_there_is_answered_with_a_near_one(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"patient,has,disease\na,r,b\n")
    with pytest.raises(DataError, match="did you mean disease"):
        rows_of(path, ("patient", "has", "diseases"))


def test_columns_cannot_be_chosen_for_a_file_without_a_header(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="CSV and Parquet only"):
        rows_of(write(tmp_path, "a.tsv", b"a\tr\tb\n"), ("x", "y", "z"))


def parquet(path: Path, **columns: list[object]) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_reads_strings_numbers_and_dictionaries(tmp_path: Path) -> None:
    words = pyarrow.array(["r", "NA"]).dictionary_encode()
    path = tmp_path / "a.parquet"
    table = pyarrow.table(
        {"weight": [0.5, 0.1], "tail": ["b", ""], "relation": words, "head": [7, 8], "t": [" x", '"']}
    )
    pyarrow.parquet.write_table(table, path)
    assert rows_of(path, ("head", "relation", "t")) == [("7", "r", " x"), ("8", "NA", '"')]
    with pytest.raises(DataError, match="column tail, row 2: expected a name, got ''"):
        rows_of(path)


def test_parquet_refuses_nulls_other_types_and_no_rows(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", head=["a", None], relation=["r", "r"], tail=["b", "c"])
    with pytest.raises(DataError, match="row 2: expected a name, got None"):
        rows_of(path)
    path = parquet(tmp_path / "lists.parquet", head=["a"], relation=["r"], tail=[["b"]])
    with pytest.raises(DataError, match="column tail: expected strings or whole numbers, got list"):
        rows_of(path)
    path = parquet(tmp_path / "b.parquet", head=[0.5], relation=["r"], tail=["b"])
    with pytest.raises(DataError, match="expected strings or whole numbers, got double"):
        rows_of(path)
    empty = pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in ("head", "relation", "tail")})
    pyarrow.parquet.write_table(empty, tmp_path / "c.parquet")
    with pytest.raises(DataError, match="empty file"):
        rows_of(tmp_path / "c.parquet")


def test_checksum_ignores_compression_and_line_ends(tmp_path: Path) -> None:
    plain = write(tmp_path, "a.txt", b"a\tr\tb\n" * 1_000_000)
    windows = write(tmp_path, "b.txt.xz", b"a\tr\tb\r\n" * 1_000_000)
    assert text_sha256(plain) == text_sha256(windows)
    assert text_sha256(write(tmp_path, "c.txt", b"a\r")) != text_sha256(write(tmp_path, "d.txt", b"a"))


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=60))
def test_the_fast_way_to_drop_duplicates_equals_the_plain_one(rows: list[tuple[int, int, int]]) -> None:
    triples = np.array(rows, dtype=np.int32).reshape(-1, 3)
    expected = distinct_triples(triples).tolist()
    assert first_occurrences(triples, 4, 3).tolist() == expected
    assert first_occurrences(triples, 2**31, 2**31).tolist() == expected  # too many for 64 bits: the plain way


def test_duplicates_are_removed_per_split_and_counted(tmp_path: Path) -> None:
    builder = GraphBuilder()
    builder.add_file("train", write(tmp_path, "a.txt", b"a\tr\tb\nc\tr\tc\na\tr\tb\n"))
    builder.add_file("test", write(tmp_path, "b.txt", b"a\tr\tb\n"))
    graph = builder.build("twice")
    assert graph.train.tolist() == [[0, 0, 1], [2, 0, 2]]
    assert graph.test.tolist() == [[0, 0, 1]]
    assert graph.removed_duplicates == 1


def test_a_parquet_column_whose_name_is_no_text(tmp_path):
    """Found by fuzzing."""
    path = tmp_path / "graph.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"headx": ["a"], "relation": ["r"], "tail": ["b"]}), path, store_schema=False
    )
    path.write_bytes(path.read_bytes().replace(b"headx", b"h\xc8\xffad"))
    with pytest.raises(DataError, match="expected a readable Parquet file"):
        list(read_names(path))
