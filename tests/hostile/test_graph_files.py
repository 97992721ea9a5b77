"""Whatever a graph file, a list or a folder holds, a reader gives a value or an error with a message."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedkge.base.errors import DataError
from fedkge.deploy.keys import create_key, read_key
from fedkge.deploy.site_graph import read_list
from fedkge.experiments.targets.files import read_targets
from fedkge.graph import Vocabulary
from fedkge.graph.datasets import load
from fedkge.graph.shards_on_disk import load_shards
from fedkge.graph.split import read_assignment
from fedkge.graph.summary import describe
from tests.hostile.mutations import harmless, mutated_bytes, mutated_json

OFTEN = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

FILES = {
    "graph.tsv": b"a\tr\tb\nb\tr\tc\nc\ts\ta\n",
    "graph.csv": b'id,head,relation,tail\n1,a,r,"b, c"\n2,b,s,a\n',
    "graph.nt": b'<http://x/a> <http://x/p> <http://x/b> .\n_:b <http://x/p> "text"@en .\n',
    "graph.ttl": b"@prefix x: <http://x/> .\nx:a x:p x:b , x:c ; x:q [ x:p x:d ] , ( x:a x:b ) .\n",
}


def read(path: Path) -> None:
    """What every command does with a graph."""
    harmless(lambda: describe(load(path)))


@pytest.mark.parametrize("name", FILES)
@OFTEN
@given(data=st.data())
def test_one_file(name: str, data: st.DataObject, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data.draw(mutated_bytes(FILES[name])))
    read(tmp_path / name)


FOLDERS = {
    "openke": {
        "entity2id.txt": b"3\na\t0\nb\t1\nc\t2\n",
        "relation2id.txt": b"2\nr\t0\ns\t1\n",
        "train2id.txt": b"2\n0 1 0\n1 2 1\n",
        "test2id.txt": b"1\n2 0 1\n",
    },
    "dict": {
        "entities.dict": b"0\ta\n1\tb\n",
        "relations.dict": b"0\tr\n",
        "train.txt": b"a\tr\tb\n",
        "test.txt": b"b\tr\ta\n",
    },
    "plain": {"train.tsv": b"a\tr\tb\nb\tr\ta\n", "valid.csv": b"head;relation;tail\na;r;b\n"},
}


@pytest.mark.parametrize("name", FOLDERS)
@OFTEN
@given(data=st.data())
def test_folders(name: str, data: st.DataObject, tmp_path: Path) -> None:
    changed = data.draw(st.sampled_from(sorted(FOLDERS[name])))
    for file, content in FOLDERS[name].items():
        (tmp_path / file).write_bytes(data.draw(mutated_bytes(content)) if file == changed else content)
    read(tmp_path)


@OFTEN
@given(data=st.data())
def test_shards(data: st.DataObject, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "client-0", ignore_errors=True)
    (tmp_path / "client-0").mkdir()
    for file, content in {**FOLDERS["dict"], "notice.txt": b"Thanks\n"}.items():
        (tmp_path / "client-0" / file).write_bytes(content)
    (tmp_path / "elsewhere-client-0.txt").write_bytes(data.draw(mutated_bytes(b"a\tr\tb\nb\tr\ta\n")))
    (tmp_path / "client-0" / "notice.txt").write_bytes(data.draw(mutated_bytes(b"Thanks to all\n")))
    harmless(lambda: load_shards(tmp_path))


@OFTEN
@given(data=st.data())
def test_parquet(data: st.DataObject, tmp_path: Path) -> None:
    """Bytes of names and types of columns, where a writer of Parquet has all freedom."""
    raw = data.draw(st.lists(st.binary(min_size=0, max_size=4), min_size=1, max_size=4))
    invalid = pyarrow.Array.from_buffers(pyarrow.string(), len(raw), pyarrow.array(raw, pyarrow.binary()).buffers())
    columns = {
        "text": invalid,
        "binary": pyarrow.array(raw, pyarrow.binary()),
        "numbers": pyarrow.array(range(len(raw)), pyarrow.uint64()),
        "floats": pyarrow.array([float(n) for n in range(len(raw))]),
        "lists": pyarrow.array([[1]] * len(raw)),
        "gaps": pyarrow.array([None] * len(raw), pyarrow.string()),
        "nothing": pyarrow.nulls(len(raw)),
        "coded": pyarrow.array(["x"] * len(raw)).dictionary_encode(),
    }
    chosen = [columns[data.draw(st.sampled_from(sorted(columns)))] for _ in range(3)]
    names = data.draw(st.sampled_from([("head", "relation", "tail"), ("a", "a", "b"), ("head", "relation", "tial")]))
    path = tmp_path / "graph.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(chosen, names=list(names)), path)
    read(path)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("parquet") / "graph.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"head": ["a", "b"], "relation": ["r", "r"], "tail": ["b", "a"]}), path)
    return path.read_bytes()


@OFTEN
@given(data=st.data())
def test_bytes_of_parquet(data: st.DataObject, parquet: bytes, tmp_path: Path) -> None:
    (tmp_path / "graph.parquet").write_bytes(data.draw(mutated_bytes(parquet)))
    read(tmp_path / "graph.parquet")


def test_a_column_whose_name_is_not_utf_8(parquet: bytes, tmp_path: Path) -> None:
    (tmp_path / "graph.parquet").write_bytes(parquet.replace(b"relation", b"relati\xff\xfe"))
    with pytest.raises(DataError, match=r"graph\.parquet: expected a readable Parquet file"):
        load(tmp_path / "graph.parquet")


def test_parquet_that_is_not_utf_8_names_the_row(tmp_path: Path) -> None:
    raw = pyarrow.array([b"fine", b"\xff\xfe", b"x"], pyarrow.binary())
    heads = pyarrow.Array.from_buffers(pyarrow.string(), 3, raw.buffers())
    table = pyarrow.table({"head": heads, "relation": ["r"] * 3, "tail": ["t"] * 3})
    pyarrow.parquet.write_table(table, tmp_path / "graph.parquet")
    with pytest.raises(
        DataError, match=r"graph\.parquet: column head, row 2: expected UTF-8 text, got the byte b'\\xff'"
    ):
        load(tmp_path / "graph.parquet")


def test_an_iri_beyond_the_parsers_buffer_says_how_far_it_came(tmp_path: Path) -> None:
    path = tmp_path / "graph.nt"
    path.write_bytes(b"<http://x/a> <http://x/p> <http://x/b> .\n<http://x/" + b"a" * 2**24 + b"> <p:p> <p:o> .\n")
    with pytest.raises(DataError, match=r"graph\.nt: expected IRIs and literals below 16 MiB.* after 1 triples"):
        load(path)


def test_triple_terms_that_would_end_the_process_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.ttl"
    path.write_bytes(b"<a:a> <p:p> " + b"<<( <a:a> <p:p> " * 200_000 + b"<a:o>" + b" )>>" * 200_000 + b" .\n")
    said = "at most 1000 triple terms within each other"
    older = "expected Turtle"  # pyoxigraph 0.4 does not read these; it has another form
    with pytest.raises(DataError, match=older if version("pyoxigraph").startswith("0.4.") else said):
        load(path)
    path.write_bytes(b"<a:a> <p:p> " + b"<< <a:a> <p:p> " * 200_000 + b"<a:o>" + b" >>" * 200_000 + b" .\n")
    harmless(lambda: load(path))


@pytest.mark.parametrize("count", [b"\x1d1", b"1_0", b"\xc2\xb2", b"+1", b"1 1", b"", b"\xd9\xa1"])
def test_openke_counts_are_plain_digits(count: bytes, tmp_path: Path) -> None:
    for file, content in FOLDERS["openke"].items():
        (tmp_path / file).write_bytes(content)
    (tmp_path / "train2id.txt").write_bytes(count + b"\n0 1 0\n")
    with pytest.raises(DataError, match=r"train2id\.txt:1: expected the number of lines that follow"):
        load(tmp_path)


@OFTEN
@given(data=st.data())
def test_lists_targets_keys_and_assignments(data: st.DataObject, tmp_path: Path) -> None:
    names = Vocabulary(("a", "b"))
    rows = b'{"format": "fedkge-targets-1", "design": "B", "targets": 1, "all": 1}\n'
    rows += b'{"head": "a", "relation": "r", "tail": "b", "member": true}\n'
    key = tmp_path / "key"
    if not key.exists():
        create_key(key)
        (tmp_path / "whole").write_bytes(key.read_bytes())
    key.write_bytes(data.draw(mutated_bytes((tmp_path / "whole").read_bytes())))
    (tmp_path / "list").write_bytes(data.draw(mutated_bytes(b"a\nb\nc\n")))
    (tmp_path / "assignment").write_bytes(data.draw(mutated_bytes(b"0\t1\n-1\t2\n3\t0\n")))
    (tmp_path / "targets").write_bytes(data.draw(mutated_json(rows, lines=True)))
    harmless(lambda: read_key(key))
    harmless(lambda: read_list(tmp_path / "list"))
    harmless(lambda: read_assignment(tmp_path / "assignment"))
    harmless(lambda: read_targets(tmp_path / "targets", names, Vocabulary(("r",))))


def test_folders_pipes_and_homes_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").mkdir()
    os.mkfifo(tmp_path / "list")
    with pytest.raises(DataError, match="empty folder"):
        load(tmp_path / "graph.tsv")
    with pytest.raises(DataError, match="a pipe or a device"):
        read_list(tmp_path / "list")
    with pytest.raises(DataError, match="no such file"):
        load("~no-such-user/graph.tsv")
