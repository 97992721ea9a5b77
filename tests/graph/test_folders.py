"""Folders: plain splits, OpenKE, numbered names; column orders; summaries; PyKEEN."""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import numpy as np
import pytest

from fedkge.base.errors import DataError, UnavailableError
from fedkge.graph.folders import read_path
from fedkge.graph.graph import SPLITS, Graph
from fedkge.graph.pykeen import from_pykeen, to_pykeen
from fedkge.graph.summary import describe, unseen_counts


def folder_of(folder: Path, **files: str) -> Path:
    """Write files; `__` in a keyword stands for the dot."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def names_of(graph: Graph, split: str) -> list[tuple[str, str, str]]:
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.split(split)]


TRAIN = "a\tlikes\tb\nb\tlikes\tc\nc\tknows\tc\n"


def test_splits_may_come_in_different_formats(tmp_path: Path) -> None:
    folder_of(tmp_path, train__tsv=TRAIN, dev__csv="subject,predicate,object\nc,knows,a\n")
    (tmp_path / "test.txt.xz").write_bytes(lzma.compress(b"a\tknows\td\n"))
    graph = read_path(tmp_path)
    assert graph.name == tmp_path.name
    assert names_of(graph, "train") == [("a", "likes", "b"), ("b", "likes", "c"), ("c", "knows", "c")]
    assert names_of(graph, "valid") == [("c", "knows", "a")]
    assert names_of(graph, "test") == [("a", "knows", "d")]
    assert unseen_counts(graph) == {"valid": 0, "test": 1}


def test_train_alone_is_enough_and_nothing_is_not(tmp_path: Path) -> None:
    assert len(read_path(folder_of(tmp_path / "one", train__txt=TRAIN)).test) == 0
    with pytest.raises(DataError, match="got an empty folder"):
        read_path(folder_of(tmp_path / "none"))
    with pytest.raises(DataError, match=r"expected train with one of .*, got test\.txt"):
        read_path(folder_of(tmp_path / "other", test__txt=TRAIN))


def test_two_files_for_one_split_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected one file for train, got train\.csv, train\.txt"):
        read_path(folder_of(tmp_path, train__txt=TRAIN, train__csv="x"))


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    folder_of(tmp_path, train__txt=TRAIN, test_negatives__txt="rubbish", meta__json="{}", train__md="x")
    assert len(read_path(tmp_path).train) == 3


@pytest.mark.parametrize(
    ("train", "valid"),
    [
        (TRAIN, "a\tb\tlikes\nb\tc\tknows\n"),
        (TRAIN, "likes\ta\tb\n"),
        ("a\tb\tlikes\nb\tc\tlikes\nc\tc\tknows\n", "a\tlikes\tb\nb\tknows\tc\n"),
    ],
)
def test_another_column_order_in_a_held_out_file_is_an_error(tmp_path: Path, train: str, valid: str) -> None:
    with pytest.raises(DataError, match=r"valid\.txt: expected the column order of train\.txt"):
        read_path(folder_of(tmp_path, train__txt=train, valid__txt=valid))


def test_a_new_relation_alone_is_no_matter_of_column_order(tmp_path: Path) -> None:
    graph = read_path(folder_of(tmp_path, train__txt=TRAIN, valid__txt="a\tmarried\tb\n"))
    assert unseen_counts(graph) == {"valid": 1, "test": 0}


OPENKE = {
    "entity2id__txt": "3\na b\t0\nc\t2\nNA\t1\n",
    "relation2id__txt": "2\nlikes\t0\nknows 1\n",
    "train2id__txt": "3\n0 1 0\n1\t2\t1\n0 1 0\n",
    "test2id__txt": "1\n2 2 1\n",
}


def test_openke_ids_stay_what_they_are(tmp_path: Path) -> None:
    graph = read_path(folder_of(tmp_path, **OPENKE))
    assert graph.entities.names == ("a b", "NA", "c")
    assert graph.train.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert graph.test.tolist() == [[2, 1, 2]]
    assert len(graph.valid) == 0
    assert graph.removed_duplicates == 1


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("train2id__txt", "4\n0 1 0\n", r"train2id\.txt:1: expected 4 triples as the first line says, got 1"),
        ("train2id__txt", "2\n0 1 0\n0 1 2\n", r"train2id\.txt:3: expected ids .* below 3, 3, 2, got '0 1 2'"),
        ("train2id__txt", "1\n0 -1 0\n", r"train2id\.txt:2: expected 3 ids"),
        ("train2id__txt", "1\n0 1\n", r"train2id\.txt:2: expected 3 ids"),
        ("train2id__txt", "0 1 0\n", r"train2id\.txt:1: expected the number of lines"),
        ("train2id__txt", "", r"train2id\.txt: expected the number of triples"),
        ("entity2id__txt", "2\na\t0\nb\t5\n", r"entity2id\.txt: expected the ids 0 to 1"),
        ("entity2id__txt", "2\na\t0\nb\t0\n", r"entity2id\.txt:3: expected every id once"),
        ("entity2id__txt", "3\na\t0\n", r"entity2id\.txt:1: expected 3 names"),
        ("entity2id__txt", "2\na\t0\na\t1\n", r"entity2id\.txt: expected every name once"),
        ("relation2id__txt", "1\n0\tlikes\n", r"relation2id\.txt:2: expected name<TAB>id"),
    ],
)
def test_what_can_be_wrong_in_an_openke_folder(tmp_path: Path, file: str, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_path(folder_of(tmp_path, **{**OPENKE, file: text}))


def test_an_openke_folder_needs_its_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected entity2id\.txt"):
        read_path(folder_of(tmp_path, train2id__txt="1\n0 0 0\n"))


DICTS = {"entities__dict": "0\tz\n2\ta\n1\tunused\n", "relations__dict": "0\tlikes\n1\tknows\n"}


@pytest.mark.parametrize("train", ["a\tknows\tz\nz\tlikes\tz\n", "2\t1\t0\n0\t0\t0\n"])
def test_dict_folders_hold_names_or_ids(tmp_path: Path, train: str) -> None:
    graph = read_path(folder_of(tmp_path, **DICTS, train__txt=train, valid__txt=train[: train.index("\n")]))
    assert graph.entities.names == ("z", "unused", "a")
    assert graph.train.tolist() == [[2, 1, 0], [0, 0, 0]]
    assert graph.valid.tolist() == [[2, 1, 0]]


def test_in_a_dict_folder_a_name_that_is_a_number_is_a_name(tmp_path: Path) -> None:
    folder_of(tmp_path, entities__dict="0\t1\n1\t0\n", relations__dict="0\tlikes\n", train__txt="1\tlikes\t0\n")
    assert read_path(tmp_path).train.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (
            "a\tknows\tz\na\tz\tknows\n",
            r"train\.txt:2: expected a name of relations\.dict in column 2, got 'z'; column 3",
        ),
        ("a\tknows\tz\na\tsees\tz\n", r"train\.txt:2: expected a name of relations\.dict in column 2, got 'sees'$"),
        (
            "a\tknows\tz\na\tknows\ty\n",
            r"train\.txt:2: expected an entity's name of entities\.dict in column 3, got 'y'",
        ),
        ("2\t1\t0\n3\t1\t0\n", r"train\.txt:2: expected an entity's id of entities\.dict in column 1, got '3'"),
    ],
)
def test_what_can_be_wrong_in_a_dict_folder(tmp_path: Path, train: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_path(folder_of(tmp_path, **DICTS, train__txt=train))


def test_a_dict_folder_is_complete_and_well_formed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, entities__dict="0\ta\n", train__txt="a\tr\ta\n")
    with pytest.raises(DataError, match=r"expected relations\.dict beside"):
        read_path(folder)
    with pytest.raises(DataError, match=r"relations\.dict:1: expected id<TAB>name"):
        read_path(folder_of(folder, relations__dict="r\t0\n"))


def test_describe_counts_what_a_loop_counts() -> None:
    generator = np.random.default_rng(5)
    rows = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in generator.integers(0, (12, 4, 12), (60, 3))]
    graph = Graph.from_names("random", rows[:40], rows[40:50], [*rows[50:], ("new", "r0", "e1")])
    summary = describe(graph)
    train = set(names_of(graph, "train"))
    known = {name for head, _, tail in train for name in (head, tail)}
    for split in SPLITS:
        triples = names_of(graph, split)
        assert summary.triples[split] == len(triples)
        assert summary.self_loops[split] == sum(head == tail for head, _, tail in triples)
        if split != "train":
            assert summary.unseen[split] == sum(not {head, tail} <= known for head, _, tail in triples)
            assert summary.also_in_train[split] == sum(triple in train for triple in triples)
    degrees = [sum((head == name) + (tail == name) for head, _, tail in train) for name in known]
    assert summary.entities_in_train == len(known)
    assert summary.degree_mean == pytest.approx(np.mean(degrees))
    assert summary.degree_median == np.median(degrees)
    assert summary.degree_max == max(degrees)
    assert summary.removed_duplicates == graph.removed_duplicates == 61 - sum(summary.triples.values())


def test_relation_categories() -> None:
    rows = [
        ("a", "one", "b"),
        ("c", "one", "d"),
        ("a", "fan", "b"),
        ("a", "fan", "c"),
        ("b", "in", "a"),
        ("c", "in", "a"),
    ]
    rows += [(head, "all", tail) for head in "ab" for tail in "cd"]
    categories = describe(Graph.from_names("kinds", rows)).categories
    assert categories == {"1-1": 1, "1-N": 1, "N-1": 1, "N-N": 1}


@pytest.mark.bench
def test_pykeen_there_and_back() -> None:
    pytest.importorskip("pykeen", reason="needs the extra fedkge[pykeen]")
    graph = Graph.from_names("tiny", [("b", "s", "a"), ("a", "r", "b"), ("c", "r", "c")], test=[("a", "s", "c")])
    factories = to_pykeen(graph)
    assert set(factories) == {"train", "test"}
    assert factories["train"].entity_to_id == {"b": 0, "a": 1, "c": 2}
    back = from_pykeen(factories["train"], testing=factories["test"])
    assert back.entities.names == graph.entities.names
    assert back.relations.names == graph.relations.names
    assert names_of(back, "test") == [("a", "s", "c")]
    assert sorted(names_of(back, "train")) == sorted(names_of(graph, "train"))


def test_without_pykeen_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnavailableError, match=r"pip install 'fedkge\[pykeen\]'"):
        to_pykeen(Graph.from_names("tiny", [("a", "r", "b")]))
