"""Joint pseudonyms: equal exactly where names are equal, and useless without every site's exponent."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("nacl")

from nacl import bindings

from fedkge.base.errors import DataError, PrivacyError
from fedkge.deploy.alignment import malformed
from fedkge.deploy.group import fresh_scalar, hash_to_point, over, points_of, raised, scalar_from
from fedkge.deploy.joint_alignment import CHECK, Party, Ring, RingList, exponent_of, go_round
from fedkge.deploy.keys import Key

KEY = Key(bytes(range(32)))
EXPONENTS = {site: scalar_from(bytes([number]) * 64) for number, site in enumerate(("a", "b", "c"), start=1)}
NAMES = {"a": ["fever", "cough", "only a"], "b": ["cough", "Fever", "rash"], "c": ["cough", "fever"]}
ORDER_2 = (2**255 - 20).to_bytes(32, "little")
"""The point (0, -1)."""
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


def parties(ring: Ring, exponents: dict[str, bytes] = EXPONENTS, key: Key = KEY) -> dict[str, Party]:
    return {site: Party(site, ring, key, exponents[site]) for site in ring.sites}


def aligned(
    names: dict[str, list[str]] = NAMES,
    sites: Sequence[str] = ("a", "b", "c"),
    exponents: dict[str, bytes] = EXPONENTS,
    federation: str = "study",
    kind: str = "entities",
) -> dict[str, dict[str, str]]:
    ring = Ring(federation, tuple(sites))
    return go_round(parties(ring, exponents), ring, kind, names)  # type: ignore[arg-type, return-value]


@settings(max_examples=15, deadline=None)
@given(st.fixed_dictionaries({site: st.lists(TEXT, min_size=1, max_size=6, unique=True) for site in "abc"}))
def test_pseudonyms_are_equal_exactly_where_names_are(names: dict[str, list[str]]) -> None:
    made = aligned(names)
    told: dict[str, str] = {}
    for site, own in names.items():
        assert list(made[site]) == own
        assert malformed(sorted(made[site].values()), most=100) is None
        for name in own:
            assert told.setdefault(name, made[site][name]) == made[site][name]
    assert len(set(told.values())) == len(told)


def test_the_order_of_the_ring_does_not_matter() -> None:
    expected = aligned()
    assert all(aligned(sites=order) == expected for order in permutations("abc"))


def test_two_and_four_sites_work_too() -> None:
    for count in (2, 4):
        sites = [f"s{number}" for number in range(count)]
        made = aligned({site: ["x", site] for site in sites}, sites, {site: fresh_scalar() for site in sites})
        assert len({own["x"] for own in made.values()}) == 1
        assert len({own[site] for site, own in made.items()}) == count


@pytest.mark.parametrize("site", "abc")
def test_without_one_exponent_no_pseudonym_can_be_guessed(site: str) -> None:
    """All others together try a dictionary: a guess at the exponent that is missing gives other pseudonyms."""
    true = {pseudonym for own in aligned().values() for pseudonym in own.values()}
    guessed = aligned(exponents={**EXPONENTS, site: fresh_scalar()})
    assert not true & {pseudonym for own in guessed.values() for pseudonym in own.values()}


def test_with_every_exponent_it_can() -> None:
    """What the guarantee rests on, turned round: the product of all exponents is all that there is to know."""
    again = Ring("study", ("a", "b", "c"))
    dictionary = ["aspirin", "cough", "fever"]
    guesses = go_round(parties(again), again, "entities", dict.fromkeys("abc", dictionary))["a"]
    assert guesses["cough"] == aligned()["b"]["cough"]


def test_kinds_and_federations_cannot_be_matched() -> None:
    flat = [
        pseudonym
        for federation in ("study", "trial")
        for kind in ("entities", "relations")
        for pseudonym in aligned(federation=federation, kind=kind)["a"].values()
    ]
    assert len(set(flat)) == len(flat) == 12


def test_what_travels_is_hidden_and_the_same_for_the_same_names_in_the_same_ring_alone() -> None:
    ring = Ring("study", ("a", "b", "c"))
    one, again = (Party("a", ring, KEY, EXPONENTS["a"]).begin("entities", NAMES["a"]) for _ in range(2))
    assert one == again
    others = [
        Party("a", ring, KEY, EXPONENTS["b"]).begin("entities", NAMES["a"]),
        Party("a", ring, KEY, EXPONENTS["a"]).begin("entities", [*NAMES["a"], "one more"]),
        Party("a", ring, KEY, EXPONENTS["a"]).begin("relations", NAMES["a"]),
        Party("a", Ring("study", ("a", "b")), KEY, EXPONENTS["a"]).begin("entities", NAMES["a"]),
        Party("a", Ring("trial", ring.sites), KEY, EXPONENTS["a"]).begin("entities", NAMES["a"]),
    ]
    for other in others:
        assert not set(points_of(one.points)) & set(points_of(other.points))
    hashes = {hash_to_point("fedkge joint 1 entities study", name) for name in (*NAMES["a"], CHECK)}
    assert not hashes & set(points_of(one.points))
    assert not set(raised(hashes, EXPONENTS["a"])) & set(points_of(one.points))


def test_another_site_cannot_match_a_list_with_its_own_names() -> None:
    """Sites that raise a list never see its pseudonyms, so they learn the size and nothing else."""
    ring = Ring("study", ("a", "b", "c"))
    people = parties(ring)
    first = people["a"].begin("entities", NAMES["a"])
    second = people["b"].pass_on(first)
    third = people["c"].pass_on(second)
    final = set(people["a"].finish(third).values())
    for message in (first, second, third):
        seen = {
            hashlib.sha256(b"fedkge joint 1 entities study" + point).digest()[:16].hex()
            for power in EXPONENTS.values()
            for point in (*points_of(message.points), *raised(points_of(message.points), power))
        }
        assert not final & seen


def mixed_order_point() -> bytes:
    point: bytes = bindings.crypto_core_ed25519_add(hash_to_point("x", "y"), ORDER_2)
    return point


@pytest.mark.parametrize(
    "content",
    [
        bytes(32),
        (1).to_bytes(32, "little"),
        ORDER_2,
        b"\xff" * 32,
        (2).to_bytes(32, "little"),
        (2**255 - 19 + 1).to_bytes(32, "little"),
        bytes(31),
        hash_to_point("x", "y") * 2,
        hash_to_point("x", "y") + mixed_order_point(),
    ],
    ids=["order 4", "identity", "order 2", "no number", "not on the curve", "not canonical", "half", "twice", "mixed"],
)
def test_a_point_outside_the_group_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match="expected"):
        points_of(content)


def test_points_inside_are_taken_and_powers_undo() -> None:
    points = [hash_to_point("x", str(number)) for number in range(20)]
    assert points_of(b"".join(points)) == points
    one, two = fresh_scalar(), fresh_scalar()
    assert raised(raised(points, one), over(two, one)) == raised(points, two)
    assert exponent_of(KEY) == exponent_of(Key(KEY.secret)) != exponent_of(Key.fresh())


class TestADishonestServer:
    ring = Ring("study", ("a", "b", "c"), most_names=5)

    def list_of_a(self, *more: str) -> RingList:
        return Party("a", self.ring, KEY, EXPONENTS["a"]).begin("entities", [*NAMES["a"], *more])

    def test_cannot_send_names_of_its_own(self) -> None:
        guesses = b"".join(hash_to_point("fedkge joint 1 entities study", name) for name in ("fever", "rash"))
        forged = RingList("study", "a", "entities", (), guesses, bytes(32))
        with pytest.raises(PrivacyError, match=r"^b: the list of 'a' has a wrong tag"):
            parties(self.ring)["b"].pass_on(forged)

    @pytest.mark.parametrize(
        "change",
        [
            {"origin": "c"},
            {"kind": "relations"},
            {"raised_by": ("c",)},
            {"points": hash_to_point("x", "y")},
            {"federation": "trial"},
            {"kind": "triples"},
        ],
    )
    def test_cannot_change_a_list_on_its_way(self, change: dict[str, object]) -> None:
        with pytest.raises(PrivacyError):
            parties(self.ring)["b"].pass_on(replace(self.list_of_a(), **change))  # type: ignore[arg-type]

    def test_cannot_have_another_list_raised_and_learns_nothing_from_the_same_one(self) -> None:
        bee, message = parties(self.ring)["b"], self.list_of_a()
        answer = bee.pass_on(message)
        remembers = Party("b", self.ring, KEY, EXPONENTS["b"], served=bee.served)
        for party in (bee, remembers):
            assert party.pass_on(message) == answer
            with pytest.raises(PrivacyError, match="served already"):
                party.pass_on(self.list_of_a("a guess"))
            with pytest.raises(PrivacyError, match="served already"):
                party.pass_on(Party("a", self.ring, KEY, EXPONENTS["c"]).begin("entities", NAMES["a"]))

    def test_cannot_change_the_way(self) -> None:
        with pytest.raises(PrivacyError, match="must not come to this site now"):
            parties(self.ring)["c"].pass_on(self.list_of_a())
        with pytest.raises(PrivacyError):
            parties(self.ring)["a"].pass_on(self.list_of_a())

    def test_cannot_tell_sites_of_different_rings(self) -> None:
        smaller = Party("a", Ring("study", ("a", "b")), KEY, EXPONENTS["a"]).begin("entities", NAMES["a"])
        with pytest.raises(PrivacyError, match="wrong tag"):
            parties(self.ring)["b"].pass_on(smaller)

    def test_cannot_give_a_list_back_early_or_to_another(self) -> None:
        people = parties(self.ring)
        message = people["a"].begin("entities", NAMES["a"])
        for who in "ab":
            with pytest.raises(PrivacyError):
                people[who].finish(message)
        with pytest.raises(PrivacyError):
            people["a"].finish(people["b"].pass_on(message))

    def test_cannot_make_a_site_serve_more_names_than_it_wants(self) -> None:
        generous = Party("a", Ring("study", ("a", "b", "c")), KEY, EXPONENTS["a"])
        with pytest.raises(PrivacyError, match="serves at most 5 names"):
            parties(self.ring)["b"].pass_on(generous.begin("entities", [str(number) for number in range(6)]))


def test_another_key_is_noticed() -> None:
    ring = Ring("study", ("a", "b"))
    message = Party("a", ring, Key.fresh(), EXPONENTS["a"]).begin("entities", ["x"])
    with pytest.raises(PrivacyError, match="do all sites have the same key"):
        Party("b", ring, KEY, EXPONENTS["b"]).pass_on(message)


def test_a_site_that_changes_its_exponent_is_noticed() -> None:
    ring = Ring("study", ("a", "b", "c"))
    people = parties(ring)

    class Fickle(Party):
        def pass_on(self, message: RingList) -> RingList:
            self._exponent = fresh_scalar()
            return super().pass_on(message)

    people["b"] = Fickle("b", ring, KEY, EXPONENTS["b"])
    with pytest.raises(PrivacyError, match="check names differ"):
        go_round(people, ring, "entities", NAMES)


def test_rings_and_lists_that_make_no_sense_are_refused() -> None:
    for sites in ((), ("a",), ("a", "a")):
        with pytest.raises(DataError, match="at least 2 different sites"):
            Ring("study", sites)
    ring = Ring("study", ("a", "b"))
    with pytest.raises(DataError, match="not among the sites"):
        Party("z", ring, KEY, EXPONENTS["a"])
    party = Party("a", ring, KEY, EXPONENTS["a"])
    for names in ([], ["x", "x"]):
        with pytest.raises(DataError, match="different names"):
            party.begin("entities", names)
    party.begin("entities", ["x"])
    with pytest.raises(PrivacyError, match="once"):
        party.begin("entities", ["y"])
