"""Canonical names: explicit, reported, and never two names in one row by accident."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.base.errors import DataError
from fedkge.deploy.canonical import Report, Rules, canonical_graph, canonical_names
from fedkge.graph import Graph

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
FORMS = st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])
CASES = st.sampled_from(["keep", "fold"])


@given(TEXT, FORMS, CASES)
def test_canonical_names_stay_as_they_are(name: str, form: str, case: str) -> None:
    rules = Rules(form, case)  # type: ignore[arg-type]
    once = rules.apply(name)
    assert rules.apply(once) == once


@given(TEXT, CASES)
def test_equivalent_spellings_become_one(name: str, case: str) -> None:
    rules = Rules("NFC", case)  # type: ignore[arg-type]
    assert len({rules.apply(unicodedata.normalize(form, name)) for form in ("NFC", "NFD")}) == 1
    wide = Rules("NFKC", case)  # type: ignore[arg-type]
    assert len({wide.apply(unicodedata.normalize(form, name)) for form in ("NFC", "NFD", "NFKC", "NFKD")}) == 1


@given(st.text(st.characters(codec="ascii"), min_size=1))
def test_folding_forgets_case(name: str) -> None:
    rules = Rules(case="fold")
    assert rules.apply(name.upper()) == rules.apply(name.lower())


def test_the_default_changes_nothing_but_the_unicode_form() -> None:
    names, report = canonical_names(["Ménière", "Me\u0301nie\u0300re (2)", "http://x/A b "], Rules())
    assert names == ["Ménière", "Ménière (2)", "http://x/A b "]
    assert report == Report(3, 1)


def test_none_changes_nothing_at_all() -> None:
    assert Rules("none").apply("e\u0301") == "e\u0301"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("http://x/obo/HP_1", "obo:HP_1"),
        ("http://x/other", "other"),
        ("http://x/http://x/twice", "http://x/twice"),
        ("elsewhere http://x/obo/", "elsewhere http://x/obo/"),
    ],
)
def test_the_longest_prefix_is_replaced_once(name: str, expected: str) -> None:
    assert Rules(prefixes={"http://x/": "", "http://x/obo/": "obo:"}).apply(name) == expected


def test_prefixes_follow_form_and_case() -> None:
    assert Rules(case="fold", prefixes={"URN:E\u0301:": "P:"}).apply("urn:é:X") == "p:x"


def test_two_sites_with_different_files_agree() -> None:
    one = Rules(prefixes={"http://x/obo/": "obo:"})
    two = Rules(prefixes={"OBO/": "obo:"})
    assert one.apply("http://x/obo/HP_1") == two.apply("OBO/HP_1")
    assert one.agreement == two.agreement != Rules(case="fold").agreement


def test_a_collision_is_an_error_that_names_both() -> None:
    graph = Graph.from_names("site", train=[("Lead", "harms", "person"), ("lead", "rhymes with", "bed")])
    with pytest.raises(DataError, match=r"'Lead' and 'lead' become 'lead'.*collisions = \"merge\""):
        canonical_graph(graph, Rules(case="fold"))
    assert canonical_graph(graph, Rules()).graph is graph


def test_many_collisions_are_counted_and_not_all_shown() -> None:
    graph = Graph.from_names("site", train=[(f"N{i}", "r", f"n{i}") for i in range(9)])
    with pytest.raises(DataError, match="and 4 more"):
        canonical_graph(graph, Rules(case="fold"))


def test_merging_is_explicit_and_keeps_every_fact() -> None:
    graph = Graph.from_names(
        "site",
        train=[("A", "R", "b"), ("a", "r", "B"), ("c", "r", "A")],
        valid=[("a", "R", "c")],
    )
    made = canonical_graph(graph, Rules(case="fold"), merge=True)
    assert list(made.graph.entities) == ["a", "b", "c"]
    named = [[made.graph.entities[h], made.graph.relations[r], made.graph.entities[t]] for h, r, t in made.graph.train]
    assert named == [["a", "r", "b"], ["c", "r", "a"]]
    assert made.graph.removed_duplicates == 1
    assert made.entities.collisions == {"a": ("A", "a"), "b": ("b", "B")}
    assert made.entities.summary == "2 of 5 names changed, 4 names became 2"
    assert made.relations.collisions == {"r": ("R", "r")}
    assert made.graph.train.dtype == np.int32


def test_a_name_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(DataError, match="'urn:': the rules leave an empty name"):
        canonical_names(["urn:"], Rules(prefixes={"urn:": ""}))


@given(st.lists(TEXT, min_size=1, max_size=20, unique=True))
def test_names_that_do_not_collide_are_told_apart(names: list[str]) -> None:
    rules = Rules("NFKC", "fold")
    canonical, report = canonical_names(names, rules)
    collided = {name for group in report.collisions.values() for name in group}
    alone = [after for before, after in zip(names, canonical, strict=True) if before not in collided]
    assert len(set(alone)) == len(alone)
    assert len(set(canonical)) == len(names) - sum(len(group) - 1 for group in report.collisions.values())
