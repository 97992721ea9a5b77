"""Input that was once accepted without a word: a header as a triple, semicolons, test triples that are in train."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph import Graph
from fedkge.graph.datasets import load
from fedkge.graph.folders import read_path
from fedkge.graph.shards_on_disk import load_shards, save_shards
from fedkge.graph.split import split
from fedkge.graph.summary import describe, leaked_counts

TRIPLES = "aspirin\ttreats\theadache\nibuprofen\ttreats\tfever\n"
HEADERS = [
    "head\trelation\ttail",
    "Subject\tPredicate\tObject",
    "#h\tr\tt",
    "source_id\tedge type\ttarget_id",
    "from\trel\tto",
    "s\tp\to",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_header_is_refused_and_skipping_it_is_offered(tmp_path: Path, header: str, line_end: str) -> None:
    path = tmp_path / "graph.tsv"
    path.write_bytes((header + "\n" + TRIPLES).replace("\n", line_end).encode())
    with pytest.raises(DataError, match=r"graph\.tsv:1: .*looks like a header.*--skip-header.*--no-skip-header"):
        load(path)
    skipped = load(path, skip_header=True)
    assert skipped.entities.names == ("aspirin", "headache", "ibuprofen", "fever")
    assert "first line of each file was skipped" in describe(skipped).notice
    assert len(load(path, skip_header=False).train) == 3


@pytest.mark.parametrize(
    "content",
    [
        TRIPLES,
        "head\trelation\ttail\nhead\trelation\tother\n",  # names that occur again are names
        "s\tp\to\no\tq\ts\n",
        "head\tpart of\tbody\nfoot\tpart of\tbody\n",
    ],
)
def test_triples_are_not_taken_for_a_header(tmp_path: Path, content: str) -> None:
    (tmp_path / "graph.tsv").write_text(content)
    assert len(load(tmp_path / "graph.tsv").train) == 2


def test_any_first_line_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("made by hand, 2026\n" + TRIPLES)
    assert len(load(tmp_path / "graph.tsv", skip_header=True).train) == 2
    (tmp_path / "only.tsv").write_text("head\trelation\ttail\n")
    with pytest.raises(DataError, match="nothing but a header"):
        load(tmp_path / "only.tsv", skip_header=True)


def test_all_files_of_a_folder_have_the_same_header_or_none_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("head\trelation\ttail\n" + TRIPLES)
    (tmp_path / "test.tsv").write_text("aspirin\ttreats\tfever\n")
    with pytest.raises(DataError, match=r"test\.tsv:1: expected the header of train\.tsv"):
        load(tmp_path, skip_header=True)
    (tmp_path / "test.tsv").write_text("head\trelation\ttail\naspirin\ttreats\tfever\n")
    assert len(load(tmp_path, skip_header=True).test) == 1


def test_a_header_in_another_order_is_refused_even_when_skipped(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("head\ttail\trelation\naspirin\theadache\ttreats\n")
    for skip in (None, True):
        with pytest.raises(DataError, match=r"graph\.tsv:1: .*says head, tail, relation.*reorder"):
            load(tmp_path / "graph.tsv", skip_header=skip)


def test_skip_header_is_for_tsv(tmp_path: Path) -> None:
    (tmp_path / "graph.csv").write_text("head,relation,tail\na,r,b\n")
    with pytest.raises(ConfigurationError, match="TSV files only"):
        load(tmp_path / "graph.csv", skip_header=True)
    with pytest.raises(ConfigurationError, match="for paths only"):
        load("umls", skip_header=True)


def test_beside_numbered_names_a_triple_is_never_skipped(tmp_path: Path) -> None:
    (tmp_path / "entities.dict").write_text("0\ta\n1\tb\n")
    (tmp_path / "relations.dict").write_text("0\tr\n")
    (tmp_path / "train.txt").write_text("a\tr\tb\nb\tr\ta\n")
    with pytest.raises(DataError, match=r"train\.txt:1: expected a header to skip"):
        load(tmp_path, skip_header=True)
    (tmp_path / "train.txt").write_text("head\trelation\ttail\na\tr\tb\na\tr\tc\n")
    with pytest.raises(DataError, match=r"train\.txt:3: .*got 'c'"):
        load(tmp_path, skip_header=True)


def test_shards_on_disk_have_no_header_whatever_their_first_triple(tmp_path: Path) -> None:
    graph = Graph.from_names("odd", train=[("head", "relation", "tail"), ("x", "likes", "y")])
    save_shards(split(graph, clients=1), tmp_path / "shards")
    assert len(load_shards(tmp_path / "shards")[0].train) == 2


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_with_another_separator_is_read(tmp_path: Path, separator: str) -> None:
    rows = [("id", "head", "relation", "tail"), ("1", f'"a{separator}b"', "likes", "c"), ("2", "c", "likes", "d")]
    path = tmp_path / "graph.csv"
    path.write_text("\n".join(separator.join(row) for row in rows) + "\n")
    assert list(read_path(path).entities) == [f"a{separator}b", "c", "d"]


def test_rows_that_are_separated_otherwise_than_the_header_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("head;relation;tail\na,likes,b\n")
    with pytest.raises(DataError, match=r"graph\.csv:2: expected 3 fields separated by ';'"):
        read_path(path)
    path.write_text("who;does;whom\na;likes;b\n")
    assert list(read_path(path, ("who", "does", "whom")).relations) == ["likes"]
    (tmp_path / "graph.tsv").write_text("a;likes;b\n")
    with pytest.raises(DataError, match=r"name the file \.csv"):
        read_path(tmp_path / "graph.tsv")


def test_leaks_are_found_across_the_clients_of_one_split() -> None:
    """A test triple may lie with another client than its twin in train."""
    rows = [(f"e{i}", f"r{i % 3}", f"e{(i * 7 + 1) % 20}") for i in range(60)]
    graph = Graph.from_names("leaky", train=rows, test=[*rows[:20], ("e0", "r0", "e19")])
    assert describe(graph).also_in_train["test"] == 20
    shards = split(graph, clients=3, by="triple", seed=3)
    tested = sum(len(shard.test) for shard in shards)
    clean = sum(("e0", "r0", "e19") in _names(shard) for shard in shards)
    assert sum(leaked_counts(shard)["test"] for shard in shards) == tested - clean
    assert tested > clean


def _names(shard: Graph) -> list[tuple[str, str, str]]:
    return [(shard.entities[h], shard.relations[r], shard.entities[t]) for h, r, t in shard.test.tolist()]
