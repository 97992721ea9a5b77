"""From site.toml to the graph that takes part."""

from pathlib import Path
from typing import Any

import pytest

from fedkge.base.errors import DataError
from fedkge.deploy.alignment import pseudonyms
from fedkge.deploy.canonical import CanonicalGraph
from fedkge.deploy.keys import Key
from fedkge.deploy.site_graph import canonical_site, keyed, raw_graph, read_list, site_graph, with_names
from fedkge.deploy.site_settings import SiteSettings
from fedkge.graph import Graph

KEY = Key(bytes(range(32)))


def site(folder: Path, triples: str, **more: Any) -> SiteSettings:
    (folder / "graph.tsv").write_text(triples, encoding="utf-8")
    least: dict[str, Any] = {"name": "north", "federation": "study", "privacy": {"epsilon": 8}}
    return SiteSettings(**{**least, "entities": "from-triples", "graph": str(folder / "graph.tsv"), **more})


def read_canonically(settings: SiteSettings) -> CanonicalGraph:
    return canonical_site(settings, raw_graph(settings))


def named(folder: Path, triples: str, **more: Any) -> tuple[list[str], set[tuple[str, str, str]]]:
    made = site_graph(read_canonically(site(folder, triples, **more)), keyed(KEY, "study"))
    names = made.aligned
    return list(made.graph.entities), {
        (names.entities[h], names.relations[r], names.entities[t]) for h, r, t in made.graph.train.tolist()
    }


def test_names_become_canonical_and_then_pseudonyms(tmp_path: Path) -> None:
    seen, facts = named(
        tmp_path,
        "urn:A\tr\turn:B\nurn:B\tr\turn:C\n",
        names={"prefixes": {"urn:": ""}, "case": "fold"},
    )
    assert seen == sorted(pseudonyms(KEY, "study", "entities", ["a", "b", "c"]))
    assert facts == {("a", "r", "b"), ("b", "r", "c")}


def test_what_the_server_sees_follows_from_the_list_and_from_no_triple(tmp_path: Path) -> None:
    listed = tmp_path / "entities.txt"
    listed.write_text("a\nb\nc\nd\n", encoding="utf-8")
    lists = {named(tmp_path, text, entities=listed)[0].__repr__() for text in ("a\tr\tb\n", "c\tr\td\nd\tr\ta\n")}
    assert len(lists) == 1


def test_without_a_list_the_graph_names_the_entities(tmp_path: Path) -> None:
    assert len(named(tmp_path, "a\tr\tb\n")[0]) == 2


def test_a_name_outside_the_list_is_an_error(tmp_path: Path) -> None:
    listed = tmp_path / "entities.txt"
    listed.write_text("a\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"1 entity names that the site's list does not have \('b'\)"):
        read_canonically(site(tmp_path, "a\tr\tb\n", entities=listed))
    with pytest.raises(DataError, match="1 relation names"):
        read_canonically(site(tmp_path, "a\tr\ta\n", relations=listed))


@pytest.mark.parametrize("text", ["", "a\na\n", "\n"])
def test_a_list_has_different_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "l").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="different names"):
        read_list(tmp_path / "l")


def test_a_list_is_utf8_and_there(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"\xff\n")
    for name in ("l", "missing"):
        with pytest.raises(DataError, match="one a line"):
            read_list(tmp_path / name)


def test_no_list_changes_nothing() -> None:
    graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    assert with_names(graph, {}) is graph
