"""N-Triples and Turtle."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fedkge.base.errors import DataError
from fedkge.graph.folders import read_path
from fedkge.graph.graph import Graph

N_TRIPLES = """\
<http://x/a> <http://x/knows> <http://x/b> .
<http://x/b> <http://x/knows> _:someone .
<http://x/a> <http://x/name> "NA" .
# a comment
<http://x/b> <http://x/name> "b"@en .
"""
TURTLE = """\
@prefix x: <http://x/> .
x:a x:knows x:b ; x:name "NA" .
x:b x:knows _:someone ; x:name "b"@en .
"""


def names_of(graph: Graph) -> list[tuple[str, str, str]]:
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.train]


@pytest.mark.parametrize(("name", "text"), [("g.nt", N_TRIPLES), ("g.ttl", TURTLE), ("g.nt.gz", N_TRIPLES)])
def test_entities_are_kept_and_literals_counted(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    graph = read_path(path)
    first, second = names_of(graph)
    assert first == ("http://x/a", "http://x/knows", "http://x/b")
    assert second[:2] == ("http://x/b", "http://x/knows")
    assert second[2] == "_:someone"
    assert graph.relations.names == ("http://x/knows",)
    assert graph.notice == "g: 2 triples with a literal object were skipped"


def test_a_folder_may_mix_rdf_and_counts_over_all_splits(tmp_path: Path) -> None:
    (tmp_path / "train.nt").write_text(N_TRIPLES)
    (tmp_path / "test.ttl").write_text("@prefix x: <http://x/> . x:b x:knows x:a ; x:age 3 .")
    graph = read_path(tmp_path)
    assert len(graph.train) == 2
    assert [graph.entities[i] for i in graph.test[0, [0, 2]]] == ["http://x/b", "http://x/a"]
    assert graph.notice.endswith(": 3 triples with a literal object were skipped")


def test_only_literals_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    path.write_text('<http://x/a> <http://x/p> "text" .\n')
    with pytest.raises(DataError, match="got only triples with literals"):
        read_path(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.nt", b"<http://x/a> <http://x/p> <http://x/b> .\n<http://x/a> oops .\n"),
        ("g.ttl", b"@prefix x: <http://x/> .\nx:a y:p x:b .\n"),
        ("g.nt", b"<http://x/a> <http://x/p> <http://x/b> .\n<http://x/\xff> <http://x/p> <http://x/b> .\n"),
    ],
)
def test_a_syntax_error_names_file_and_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_path(path)
    assert str(caught.value).startswith(f"{path}:2: expected ")
