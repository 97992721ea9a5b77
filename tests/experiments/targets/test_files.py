"""Targets on disk: round trips by name, and every kind of damage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkge.base.errors import DataError
from fedkge.experiments.targets import Design, Targets, draw_targets
from fedkge.experiments.targets.files import read_targets, write_targets
from fedkge.graph import Vocabulary
from tests.experiments.targets.test_drawing import ALL, GRAPH, named, pool, random, same

names = st.lists(st.text(min_size=1, max_size=6), min_size=3, max_size=6, unique=True).map(
    lambda texts: Vocabulary(tuple(texts))
)


@settings(deadline=None, max_examples=40)
@given(entities=names, relations=names, design=st.sampled_from(ALL), count=st.integers(0, 5), data=st.data())
def test_files_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    entities: Vocabulary,
    relations: Vocabulary,
    design: Design,
    count: int,
    data: st.DataObject,
) -> None:
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.booleans()), min_size=count, max_size=9))
    triples = np.array([row[:3] for row in rows], dtype=np.int32).reshape(-1, 3)
    bits = np.array([row[3] for row in rows], dtype=np.bool_)
    targets = Targets(design, triples[:count], bits[:count], triples[count:], bits[count:])
    path = tmp_path_factory.mktemp("targets") / "targets.jsonl"
    write_targets(path, targets, entities, relations)
    assert same(read_targets(path, entities, relations), targets)
    assert [file.name for file in path.parent.iterdir()] == ["targets.jsonl"]


def test_files_follow_names_and_not_numbers(tmp_path: Path) -> None:
    targets = draw_targets("D", pool(), random(), count=10)
    write_targets(tmp_path / "t.jsonl", targets, GRAPH.entities, GRAPH.relations)
    turned = Vocabulary(tuple(reversed(tuple(GRAPH.entities))))
    read = read_targets(tmp_path / "t.jsonl", turned, GRAPH.relations)
    assert [turned[head] for head in read.triples[:, 0]] == [triple[0] for triple in named(targets.triples)]
    with pytest.raises(DataError, match=r"t.jsonl:2: .* unknown entity"):
        read_targets(tmp_path / "t.jsonl", Vocabulary(("x", "y")), GRAPH.relations)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (0, "{}"),
        (0, "[]"),
        (0, '{"format": "other", "design": "A", "targets": 1, "all": 2}'),
        (0, '{"format": "fedkge-targets-1", "design": "Z", "targets": 1, "all": 2}'),
        (0, '{"format": "fedkge-targets-1", "design": "A", "targets": "x", "all": 2}'),
        (0, '{"format": "fedkge-targets-1", "design": "A", "targets": 1, "all": 3}'),
        (2, "not json"),
        (2, '{"head": "a", "relation": "r", "tail": "b"}'),
        (2, '{"head": "a", "relation": "r", "tail": "b", "member": "yes"}'),
        (2, '{"head": 5, "relation": "r", "tail": "b", "member": true}'),
        (2, '{"head": ["a"], "relation": "r", "tail": "b", "member": true}'),
        (2, '{"head": "a", "relation": "r", "tail": "z", "member": true}'),
    ],
)
def test_damaged_files(tmp_path: Path, line: int, text: str) -> None:
    row = {"head": "a", "relation": "r", "tail": "b", "member": True}
    good = [json.dumps({"format": "fedkge-targets-1", "design": "A", "targets": 1, "all": 2}), *[json.dumps(row)] * 2]
    path = tmp_path / "targets.jsonl"
    vocabularies = Vocabulary(("a", "b")), Vocabulary(("r",))
    path.write_text("\n".join(good) + "\n", encoding="utf-8")
    assert len(read_targets(path, *vocabularies)) == 1
    good[line] = text
    path.write_text("\n".join(good) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"targets.jsonl:\d: expected fedkge-targets-1"):
        read_targets(path, *vocabularies)


def test_missing_and_cut_files(tmp_path: Path) -> None:
    vocabularies = Vocabulary(("a", "b")), Vocabulary(("r",))
    with pytest.raises(DataError, match="draw them first"):
        read_targets(tmp_path / "none.jsonl", *vocabularies)
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty.jsonl:1"):
        read_targets(tmp_path / "empty.jsonl", *vocabularies)
