"""Target triples: the rules of each design, checked by name on synthetic shards."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.experiments.targets import (
    DESIGNS,
    Design,
    Pool,
    Targets,
    auxiliary_triples,
    draw_canaries,
    draw_targets,
    pool_of,
    run_ids,
)
from fedkge.graph import Graph, Triples, Vocabulary
from fedkge.graph.split import Shards, split
from fedkge.graph.synthetic import synthetic_graph

Named = tuple[str, str, str]
GRAPH = synthetic_graph(150, 8, 4000, seed=1)
SHARDS = split(GRAPH, clients=3, by="entity", seed=7, overlap=0.6)
ALL: list[Design] = ["A", "B", "C", "D"]


def pool(shards: Shards = SHARDS, excluded: Triples | None = None) -> Pool:
    return pool_of(shards[0], shards[1], shards, GRAPH.entities, GRAPH.relations, excluded)


def named(triples: Triples) -> list[Named]:
    return [(GRAPH.entities[h], GRAPH.relations[r], GRAPH.entities[t]) for h, r, t in triples.tolist()]


def held(shard: Graph, *parts: str) -> set[Named]:
    return {
        (shard.entities[head], shard.relations[relation], shard.entities[tail])
        for part in parts or ("train", "valid", "test")
        for head, relation, tail in shard.split(part).tolist()
    }


def random(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(one: Targets, two: Targets) -> bool:
    return one.design == two.design and all(
        np.array_equal(getattr(one, name), getattr(two, name))
        for name in ("triples", "members", "calibration_triples", "calibration_members")
    )


def assert_rules(targets: Targets, shards: Shards, calibrated: bool) -> None:
    """Everything that holds for targets of a design, with sets of names in place of keys."""
    victim, adversary = shards[0], shards[1]
    triples = named(targets.calibration_triples if calibrated else targets.triples)
    bits = targets.calibration_members if calibrated else targets.members
    anywhere = set().union(*(held(shard) for shard in shards))
    train, held_out = held(victim, "train"), held(victim, "valid", "test")
    elsewhere = set().union(*(held(shard) for shard in shards.graphs[1:]))
    trained = set().union(*(held(shard, "train") for shard in shards))
    for triple, member in zip(triples, bits.tolist(), strict=True):
        head, relation, tail = triple
        assert all(end in victim.entities and end in adversary.entities for end in (head, tail))
        assert relation in victim.relations
        assert relation in adversary.relations
        if targets.design == "C":
            assert triple not in anywhere
        elif member:
            assert triple in train - elsewhere
        elif targets.design == "B":
            assert triple in held_out - trained
        else:
            assert triple not in anywhere
            assert head != tail
        if targets.design == "D" and not member:
            assert any((h, r) == (head, relation) for h, r, _ in train)
            assert any((r, t) == (relation, tail) for _, r, t in train)
            assert any(r == relation and (h == head) != (t == tail) for h, r, t in train)


@settings(deadline=None, max_examples=12)
@given(design=st.sampled_from(ALL), seed=st.integers(0, 99), by=st.sampled_from(["entity", "triple"]))
def test_rules_of_every_design(design: Design, seed: int, by: str) -> None:
    shards = split(GRAPH, clients=2, by=by, seed=seed, overlap=0.8 if by == "entity" else None)
    targets = draw_targets(design, pool(shards), random(seed), count=20, calibration=5)
    assert (len(targets), int(targets.members.sum())) == (40, 20)
    assert (len(targets.calibration_triples), int(targets.calibration_members.sum())) == (10, 5)
    assert len(set(named(targets.everything))) == 50
    assert targets.triples.dtype == targets.calibration_triples.dtype == np.int32
    assert_rules(targets, shards, calibrated=False)
    assert_rules(targets, shards, calibrated=True)


@pytest.mark.parametrize("design", ALL)
def test_draws_repeat_under_a_seed_and_only_then(design: Design) -> None:
    one, two, other = (draw_targets(design, pool(), random(seed), count=20) for seed in (3, 3, 4))
    assert same(one, two)
    assert not np.array_equal(one.triples, other.triples)
    assert not np.array_equal(one.members, np.sort(one.members)[::-1])


def test_designs_are_the_four() -> None:
    assert tuple(DESIGNS) == get_args(Design)


def test_pool_equals_sets_of_names() -> None:
    """The brute-force twin of the pool; every triple that it should hold, and no other."""
    victim, adversary = SHARDS[0], SHARDS[1]
    entities = set(victim.entities) & set(adversary.entities)
    relations = set(victim.relations) & set(adversary.relations)
    everyone = [held(shard, "train") for shard in SHARDS]
    others = held(SHARDS[1]) | held(SHARDS[2])

    def inside(triples: set[Named]) -> set[Named]:
        return {(h, r, t) for h, r, t in triples if {h, t} <= entities and r in relations}

    drawn = pool()
    assert set(named(drawn.real)) == inside(held(victim, "train") - others)
    assert set(named(drawn.held_out)) == inside(held(victim, "valid", "test") - set().union(*everyone))
    assert {GRAPH.entities[entity] for entity in drawn.entities} == entities
    assert len(drawn.known) == len(set().union(*(held(shard) for shard in SHARDS)))


def test_shared_triples_are_no_members_and_trained_triples_no_held_out_ones() -> None:
    """Triples that another client holds too would be known to it, and say nothing about the victim."""
    one = Graph.from_names(
        "one",
        [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")],
        [("b", "r", "a")],
        [("a", "r", "c"), ("b", "r", "a")],
    )
    two = Graph.from_names("two", [("b", "r", "c"), ("a", "r", "c")], [("c", "r", "a")])
    drawn = pool_of(one, two, [one, two], one.entities, one.relations)
    assert drawn.real.tolist() == [[0, 0, 1]]
    assert drawn.held_out.tolist() == [[1, 0, 0]]


def test_excluded_triples_are_never_drawn() -> None:
    canaries = draw_canaries(pool(), random(), canaries=200)
    victim = SHARDS[0]
    inserted = [
        [victim.entities.id_of(h), victim.relations.id_of(r), victim.entities.id_of(t)]
        for h, r, t in named(canaries.inserted)
    ]
    poisoned = replace(victim, train=np.concatenate([victim.train, np.array(inserted, dtype=np.int32)]))
    shards = Shards(SHARDS.name, (poisoned, *SHARDS.graphs[1:]), SHARDS.summary)
    drawn, clean = pool(shards, excluded=canaries.everything), pool()
    assert np.array_equal(drawn.real, clean.real)
    assert np.array_equal(drawn.fitting, clean.fitting)
    for design in ("A", "D"):
        others = draw_targets(design, drawn, random(), count=100)
        assert not set(named(others.everything)) & set(named(canaries.everything))


def test_adversary_that_sees_every_row_has_no_limit() -> None:
    victim = SHARDS[0]
    drawn = pool_of(victim, None, SHARDS, GRAPH.entities, GRAPH.relations)
    assert len(drawn.entities) == len(victim.entities)
    assert set(named(drawn.real)) == held(victim, "train")
    with pytest.raises(DataError, match=r"got 1,083; ask for a smaller --targets-count"):
        draw_targets("A", drawn, random(), count=10**6)


def test_canaries_half_or_coins() -> None:
    drawn = pool()
    half = draw_canaries(drawn, random(), canaries=301, calibration=11)
    assert (len(half), int(half.members.sum()), int(half.calibration_members.sum())) == (301, 150, 5)
    assert len(half.inserted) == 155
    assert_rules(half, SHARDS, calibrated=False)
    coins = draw_canaries(drawn, random(), canaries=300, membership="coins")
    assert len(coins.calibration_triples) == 0
    sums = [int(draw_canaries(drawn, random(seed), 40, "coins").members.sum()) for seed in range(200)]
    # 8,000 fair coins; |mean - 20| beyond 4 standard errors (0.89) has probability 0.00006; a fixed half has no spread.
    assert abs(np.mean(sums) - 20) < 0.89
    assert len(set(sums)) > 5


def test_random_triples_are_uniform() -> None:
    """Chi-square over all 21 free triples of a small graph: p < 0.001 would be a false alarm once in 1,000 seeds."""
    graph = Graph.from_names("g", [("a", "r", "b"), ("b", "s", "c"), ("c", "s", "d")])
    drawn = pool_of(graph, None, [graph], graph.entities, graph.relations)
    counts = np.zeros((4, 2, 4))
    for seed in range(600):
        for head, relation, tail in draw_canaries(drawn, random(seed), canaries=7).triples.tolist():
            counts[head, relation, tail] += 1
    free = counts[counts > 0]
    assert len(free) == 4 * 3 * 2 - 3
    assert ((free - 200) ** 2 / 200).sum() < 45.3  # 0.999 quantile with 20 degrees of freedom; draws without
    # replacement spread less than independent ones, so the true rate is lower still


def test_every_free_triple_can_be_had_and_no_more() -> None:
    graph = Graph.from_names("g", [("a", "r", "b"), ("b", "s", "c"), ("c", "s", "d"), ("d", "s", "d")])
    drawn = pool_of(graph, None, [graph], graph.entities, graph.relations)
    assert len(draw_canaries(drawn, random(), canaries=21, calibration=9)) == 21
    with pytest.raises(
        DataError, match="expected at least 22 within the 4 entities and 2 relations of its own, got 21"
    ):
        draw_canaries(drawn, random(), canaries=22)


def test_every_fitting_corruption_can_be_had() -> None:
    """Five heads and five tails of one relation, eight triples: 17 corruptions that fit, found by starting again."""
    rows = [(f"h{n}", "r", f"t{n}") for n in range(5)] + [(f"h{n}", "r", f"t{n + 1}") for n in range(3)]
    graph = Graph.from_names("g", rows)
    drawn = pool_of(graph, None, [graph], graph.entities, graph.relations)
    targets = draw_targets("D", drawn, random(), count=8, calibration=9)
    assert (len(targets), len(targets.calibration_triples)) == (16, 0)
    assert {graph.entities[head][0] + graph.entities[tail][0] for head, _, tail in targets.triples.tolist()} == {"ht"}
    lonely = Graph.from_names("g", [("a", "r", "b"), ("c", "s", "d")])
    with pytest.raises(DataError, match=r"fitting corruptions: expected at least 1 .* got 0"):
        draw_targets("D", pool_of(lonely, None, [lonely], lonely.entities, lonely.relations), random(), count=1)


@pytest.mark.parametrize("design", ALL)
def test_calibration_takes_what_is_left(design: Design) -> None:
    drawn = pool()
    most = {"A": len(drawn.real), "B": min(len(drawn.held_out), len(drawn.real)), "C": 100, "D": 100}[design]
    targets = draw_targets(design, drawn, random(), count=most - 2, calibration=5)
    assert len(targets) == 2 * (most - 2)
    assert len(targets.calibration_triples) == (4 if design in "AB" else 10)
    assert len(draw_targets(design, drawn, random(), count=most - 2, calibration=0).calibration_triples) == 0


@pytest.mark.parametrize("design", ALL)
def test_too_few_says_how_many_and_what_to_change(design: Design) -> None:
    with pytest.raises(
        DataError, match=rf"design {design}: .*client-0.*client-1, got [\d,]+; ask for a smaller --targets-count"
    ) as info:
        draw_targets(design, pool(), random(), count=10**7)
    assert "--overlap" in str(info.value)


def test_no_overlap_at_all() -> None:
    one, two = Graph.from_names("one", [("a", "r", "b")]), Graph.from_names("two", [("c", "s", "d")])
    names = Vocabulary(("a", "b", "c", "d")), Vocabulary(("r", "s"))
    drawn = pool_of(one, two, [one, two], *names)
    for design in ALL:
        with pytest.raises(DataError, match="within the 0 entities and 0 relations that one shares with two, got 0"):
            draw_targets(design, drawn, random(), count=1)


def test_wrong_arguments() -> None:
    with pytest.raises(ConfigurationError, match="unknown design of targets 'E'"):
        draw_targets("E", pool(), random())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="at least 1 target"):
        draw_targets("A", pool(), random(), count=0)
    with pytest.raises(ConfigurationError, match="half or coins"):
        draw_canaries(pool(), random(), membership="most")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="expected the victim client-0 among the 1 shards"):
        pool_of(SHARDS[0], SHARDS[1], [SHARDS[1]], GRAPH.entities, GRAPH.relations)
    with pytest.raises(DataError, match="unknown entity"):
        pool_of(SHARDS[0], SHARDS[1], SHARDS, Vocabulary(("x",)), GRAPH.relations)
    with pytest.raises(DataError, match="with n bits"):
        Targets("A", np.zeros((2, 3), np.int32), np.zeros(1, np.bool_))


@settings(deadline=None, max_examples=20)
@given(per_relation=st.integers(0, 60), seed=st.integers(0, 50))
def test_auxiliary_triples(per_relation: int, seed: int) -> None:
    victim, vocabularies = SHARDS[0], (GRAPH.entities, GRAPH.relations)
    targets = [draw_targets(design, pool(), random(seed), count=30, calibration=10) for design in ("A", "B")]
    found = auxiliary_triples(victim, targets, *vocabularies, random(seed), per_relation)
    again = auxiliary_triples(victim, iter(targets), *vocabularies, random(seed), per_relation)
    assert np.array_equal(found, again)
    taken = set(named(targets[0].everything)) | set(named(targets[1].everything))
    possible = held(victim, "train") - taken
    assert len(set(named(found))) == len(found)
    assert set(named(found)) <= possible
    for relation in victim.relations:
        available = sum(triple[1] == relation for triple in possible)
        assert sum(triple[1] == relation for triple in named(found)) == min(per_relation, available)


def test_run_ids_keep_names() -> None:
    shard = SHARDS[2]
    assert set(named(run_ids(shard.train, shard, GRAPH.entities, GRAPH.relations))) == held(shard, "train")
