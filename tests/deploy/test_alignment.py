"""Alignment by keyed pseudonyms: the same partition as equality of names, and nothing of a name or a triple."""

import hashlib
import hmac
import re
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkge.base.errors import DataError, PrivacyError
from fedkge.deploy.alignment import (
    PSEUDONYM_BYTES,
    UnionIndex,
    Witness,
    aligned_graph,
    confirmed,
    fingerprint,
    malformed,
    ownership_tags,
    pseudonyms,
)
from fedkge.deploy.keys import Key
from fedkge.graph import Graph

KEY, OTHER = Key(bytes(range(32))), Key(bytes(range(1, 33)))
NAMES = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=15, unique=True)
SITES = st.dictionaries(st.sampled_from(["ants", "bees", "cats", "dogs"]), NAMES, min_size=1)


def lists_of(sites: dict[str, list[str]]) -> dict[str, list[str]]:
    return {site: sorted(pseudonyms(KEY, "study", "entities", names)) for site, names in sites.items()}


@given(SITES)
def test_rows_are_shared_exactly_where_names_are_equal(sites: dict[str, list[str]]) -> None:
    union = UnionIndex.of(lists_of(sites))
    everything = {name for names in sites.values() for name in names}
    row_of = dict(zip(everything, pseudonyms(KEY, "study", "entities", list(everything)), strict=True))
    assert sorted(row_of.values()) == list(union.rows)
    for name, pseudonym in row_of.items():
        row = union.rows.index(pseudonym)
        having = {site for site, names in sites.items() if name in names}
        assert {site for site, places in union.places.items() if row in places} == having
        assert union.owners[row] == len(having)


@given(SITES, st.integers(1, 5))
def test_a_site_and_the_server_find_the_same_rows_to_upload(sites: dict[str, list[str]], least: int) -> None:
    lists: ClassVar = lists_of(sites)
    union = UnionIndex.of(lists)
    tags = {site: ownership_tags(KEY, "study", site, names) for site, names in lists.items()}
    for site, names in lists.items():
        seen = confirmed(KEY, "study", site, names, union.evidence(site, tags), least)
        assert seen.tolist() == union.shared(site, least).tolist()


def test_the_index_does_not_depend_on_the_order_of_sites() -> None:
    lists = {"b": ["11", "22"], "a": ["00", "11"]}
    one, other = UnionIndex.of(lists), UnionIndex.of(dict(reversed(lists.items())))
    assert one.rows == other.rows
    assert list(one.places) == list(other.places) == ["a", "b"]


def test_pseudonyms_differ_by_key_kind_federation_and_name() -> None:
    made = [
        pseudonyms(key, federation, kind, ["fever", "Fever"])  # type: ignore[arg-type]
        for key in (KEY, OTHER)
        for federation in ("study", "study2")
        for kind in ("entities", "relations")
    ]
    flat = [name for names in made for name in names]
    assert len(set(flat)) == len(flat) == 16
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in flat)


def test_pseudonyms_are_hmac_sha256_as_anybody_can_compute_it() -> None:
    def field(text: str) -> bytes:
        return len(text.encode()).to_bytes(8, "big") + text.encode()

    info = field("fedkge derive 1") + field("pseudonyms of entities") + field("study")
    subkey = hmac.new(KEY.secret, info, hashlib.sha256).digest()
    expected = hmac.new(subkey, b"Fieber", hashlib.sha256).hexdigest()[:32]
    assert pseudonyms(KEY, "study", "entities", ["Fieber"]) == [expected]


def test_fingerprints_tell_keys_rules_and_federations_apart() -> None:
    marks = [
        fingerprint(key, federation, rules)
        for key in (KEY, OTHER)
        for federation in ("study", "trial")
        for rules in ("unicode NFC, case keep", "unicode NFC, case fold")
    ]
    assert len(set(marks)) == 8
    assert fingerprint(Key(KEY.secret), "study", "unicode NFC, case keep") == marks[0]


@given(st.lists(st.tuples(*[st.sampled_from("abcdef")] * 3), min_size=1, max_size=20), st.randoms())
def test_what_leaves_does_not_depend_on_how_the_file_is_ordered(triples: list[tuple[str, str, str]], random) -> None:  # type: ignore[no-untyped-def]
    def listed(rows: list[tuple[str, str, str]]) -> tuple[list[str], list[str], set[tuple[str, str, str]]]:
        graph = Graph.from_names("site", train=rows)
        made = aligned_graph(
            graph,
            pseudonyms(KEY, "study", "entities", graph.entities.names),
            pseudonyms(KEY, "study", "relations", graph.relations.names),
        )
        named = {(made.entities[h], made.relations[r], made.entities[t]) for h, r, t in made.graph.train.tolist()}
        return list(made.graph.entities), list(made.graph.relations), named

    shuffled = random.sample(triples, len(triples))
    assert listed(triples) == listed(shuffled)
    assert listed(triples)[2] == set(triples)
    assert listed(triples)[0] == sorted(listed(triples)[0])


def test_the_upload_does_not_depend_on_triples() -> None:
    entities = ["a", "b", "c"]
    for train in ([("a", "r", "b"), ("b", "r", "c")], [("c", "r", "a"), ("a", "r", "b"), ("c", "s", "b")]):
        graph = Graph.from_names("site", train=train)
        names = pseudonyms(KEY, "study", "entities", graph.entities.names)
        made = aligned_graph(graph, names, pseudonyms(KEY, "study", "relations", graph.relations.names))
        assert list(made.graph.entities) == sorted(pseudonyms(KEY, "study", "entities", entities))


def test_equal_pseudonyms_of_one_site_are_refused() -> None:
    graph = Graph.from_names("site", train=[("a", "r", "b")])
    with pytest.raises(DataError, match="same one twice"):
        aligned_graph(graph, ["00", "00"], ["11"])


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("0" * 32, "expected a list"),
        ([], "expected 1 to 3 pseudonyms, got 0"),
        ([f"{i:032x}" for i in range(4)], "expected 1 to 3 pseudonyms, got 4"),
        (["patient 4711"], "entry 0: expected 32 hexadecimal digits"),
        (["0" * 32 + "\n"], "entry 0"),
        ([b"0" * 32], "entry 0"),
        (["0" * 31 + "A"], "entry 0"),
        (["1" * 32, "1" * 32], "entry 1: expected each pseudonym once, in ascending order"),
        (["1" * 32, "0" * 32], "entry 1"),
    ],
)
def test_a_malformed_list_is_refused_without_repeating_it(names: object, reason: str) -> None:
    found = malformed(names, most=3)
    assert found is not None
    assert reason in found
    assert "4711" not in found


class TestADishonestServer:
    lists: ClassVar = lists_of({"a": ["x", "only a"], "b": ["x", "only b"], "c": ["x", "z"]})
    tags: ClassVar = {site: ownership_tags(KEY, "study", site, names) for site, names in lists.items()}

    def seen_by_a(self, evidence: dict[str, Witness], least: int = 2) -> list[bool]:
        return confirmed(KEY, "study", "a", self.lists["a"], evidence, least).tolist()

    def alone(self) -> int:
        return self.lists["a"].index(pseudonyms(KEY, "study", "entities", ["only a"])[0])

    def test_cannot_invent_an_owner(self) -> None:
        for tags in (bytes(PSEUDONYM_BYTES), self.tags["b"][:PSEUDONYM_BYTES], self.tags["a"][:PSEUDONYM_BYTES]):
            with pytest.raises(PrivacyError, match=r"^a: the server says that 'b' owns"):
                self.seen_by_a({"b": Witness(np.array([self.alone()]), tags)})

    def test_cannot_give_a_site_two_names(self) -> None:
        honest = UnionIndex.of(self.lists).evidence("a", self.tags)
        with pytest.raises(PrivacyError):
            self.seen_by_a({**honest, "ghost": honest["b"]}, least=4)

    def test_cannot_let_a_site_vouch_for_itself(self) -> None:
        own = ownership_tags(KEY, "study", "a", self.lists["a"])
        with pytest.raises(PrivacyError, match="own word"):
            self.seen_by_a({"a": Witness(np.arange(2), own)})

    def test_cannot_count_one_owner_twice(self) -> None:
        honest = UnionIndex.of(self.lists).evidence("a", self.tags)["b"]
        twice = Witness(np.repeat(honest.places, 2), honest.tags * 2)
        with pytest.raises(PrivacyError, match="named twice"):
            self.seen_by_a({"b": twice}, least=3)

    def test_cannot_use_tags_of_another_federation(self) -> None:
        names = [self.lists["a"][self.alone()]]
        with pytest.raises(PrivacyError):
            self.seen_by_a({"b": Witness(np.array([self.alone()]), ownership_tags(KEY, "trial", "b", names))})

    @pytest.mark.parametrize("places", [[-1], [2], [[0]]])
    def test_cannot_point_outside(self, places: list[int]) -> None:
        with pytest.raises(PrivacyError):
            self.seen_by_a({"b": Witness(np.array(places), bytes(PSEUDONYM_BYTES))})

    def test_can_only_make_a_site_upload_less(self) -> None:
        honest = UnionIndex.of(self.lists).evidence("a", self.tags)
        assert sum(self.seen_by_a(honest)) == 1
        assert sum(self.seen_by_a({})) == 0

    def test_with_a_site_on_its_side_it_can(self) -> None:
        """What the documentation admits: who holds the key can vouch for anybody."""
        names = [self.lists["a"][self.alone()]]
        forged = Witness(np.array([self.alone()]), ownership_tags(KEY, "study", "b", names))
        assert self.seen_by_a({"b": forged})[self.alone()]


@settings(max_examples=20)
@given(NAMES)
def test_other_keys_share_nothing(names: list[str]) -> None:
    mine, theirs = (pseudonyms(key, "study", "entities", names) for key in (KEY, OTHER))
    assert not set(mine) & set(theirs)
