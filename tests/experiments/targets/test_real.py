"""Real targets: a coin each; who is out is nowhere in the victim's data, and the training shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedkge.api.training import open_run, start
from fedkge.base.errors import DataError
from fedkge.experiments.targets import Targets, run_ids
from fedkge.experiments.targets.canaries import CANARIES, insert_canaries
from fedkge.experiments.targets.files import read_targets
from fedkge.graph import Graph, Triples, Vocabulary
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from tests.experiments.test_recorded_views import SHARDS, record, tiny

LARGE = split(synthetic_graph(entities=200, relations=6, triples=12_000, seed=1), clients=2, by="entity", seed=3)


def drawn(shards: tuple[Graph, ...] = SHARDS.graphs, count: int = 60, **options: object) -> tuple[Graph, Targets]:
    changed, targets = insert_canaries(shards, tiny(canaries=count, canary_source="real", **options))
    assert targets is not None
    return changed[0], targets


def names_of(shards: tuple[Graph, ...] = SHARDS.graphs) -> tuple[Vocabulary, Vocabulary]:
    return (
        Vocabulary.union([shard.entities for shard in shards]),
        Vocabulary.union([shard.relations for shard in shards]),
    )


def as_set(triples: Triples) -> set[tuple[int, ...]]:
    return {tuple(row) for row in triples.tolist()}


def test_members_stay_and_the_others_are_nowhere() -> None:
    victim, targets = drawn(canary_coins="seeded")
    entities, relations = names_of()
    inside, outside = (as_set(targets.triples[bits]) for bits in (targets.members, ~targets.members))
    assert targets.design == "R"
    assert len(inside | outside) == len(targets) == 60
    before = as_set(run_ids(SHARDS[0].train, SHARDS[0], entities, relations))
    after = run_ids(victim.train, victim, entities, relations)
    assert as_set(after) == before - outside
    assert len(after) == len(before) - len(outside)
    assert inside | outside <= before
    for shard in (victim, *SHARDS.graphs[1:]):
        assert not as_set(run_ids(shard.all_triples, shard, entities, relations)) & outside
    assert not as_set(run_ids(victim.true_triples, victim, entities, relations)) & outside
    assert (victim.entities, victim.relations) == (SHARDS[0].entities, SHARDS[0].relations)


def test_what_is_held_out_too_is_no_target() -> None:
    """It would still stand in the validation triples, and with them in filters, after a coin took it away."""
    again = replace(SHARDS[0], valid=SHARDS[0].train[::2].copy())
    shards = (again, *SHARDS.graphs[1:])
    _, targets = drawn(shards, count=40)
    held_out = as_set(run_ids(again.valid, again, *names_of(shards)))
    assert len(held_out) > 100
    assert not as_set(targets.everything) & held_out


def test_coins_are_fair_independent_and_the_systems_unless_seeded() -> None:
    """1,800 coins: 4.5 standard deviations around a half, and around a quarter for two in a row."""
    seeded = [drawn(LARGE.graphs, 1800, canary_coins="seeded", seed=seed)[1] for seed in (1, 1, 2)]
    system = [drawn(LARGE.graphs, 1800, canary_coins="independent", seed=1)[1] for _ in range(2)]
    np.testing.assert_array_equal(seeded[0].members, seeded[1].members)
    for one in (seeded[0], seeded[2], *system):
        assert abs(one.members.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(1800)
        assert abs((one.members[1:] & one.members[:-1]).mean() - 0.25) < 0.06
    for other in (seeded[2], *system):
        assert abs((seeded[0].members ^ other.members).mean() - 0.5) < 0.06
    assert abs((system[0].members ^ system[1].members).mean() - 0.5) < 0.06
    np.testing.assert_array_equal(system[0].triples, system[1].triples)


def test_half_leaves_exactly_half_and_calibrates_on_others() -> None:
    victim, targets = drawn()
    assert (len(targets), int(targets.members.sum())) == (60, 30)
    assert (len(targets.calibration_triples), int(targets.calibration_members.sum())) == (12, 6)
    assert len(as_set(targets.everything)) == 72
    assert len(victim.train) == len(SHARDS[0].train) - 36


def test_more_than_half_of_the_victims_triples_are_refused() -> None:
    with pytest.raises(DataError, match=r"design R: expected 1 to .* half of the .* got 5,000: ask for fewer"):
        drawn(count=5000)


def test_the_federation_is_the_one_without_the_triples_that_are_out(tmp_path: Path) -> None:
    """Uploads, relations and model are, bit for bit, those of clients who never had them."""
    run = record(tmp_path / "real", canaries=60, canary_source="real", canary_coins="seeded")
    targets = read_targets(tmp_path / "real" / CANARIES, run.entities, run.relations)
    first = SHARDS[0]
    keys = run_ids(first.train, first, run.entities, run.relations)
    others = [row for row, key in zip(first.train, keys, strict=True) if tuple(key) not in as_set(targets.everything)]
    place = {tuple(key): row for key, row in zip(keys.tolist(), first.train, strict=True)}
    members = [place[tuple(key)] for key in targets.triples[targets.members].tolist()]
    by_hand = replace(first, train=np.array([*others, *members], np.int32))
    bare = start(tiny(), (by_hand, *SHARDS.graphs[1:]), tmp_path / "bare")
    assert run.tensors.keys() == bare.tensors.keys()
    for name, table in run.tensors.items():
        np.testing.assert_array_equal(table, bare.tensors[name])
    uploads = [
        path.relative_to(tmp_path / "real") for path in (tmp_path / "real" / "transcript").rglob("*.safetensors")
    ]
    assert len(uploads) > 6
    for path in uploads:
        assert (tmp_path / "real" / path).read_bytes() == (tmp_path / "bare" / path).read_bytes()


def test_a_run_opens_again_with_the_coins_of_the_system(tmp_path: Path) -> None:
    options = {"canaries": 60, "canary_source": "real", "canary_coins": "independent"}
    configuration = tiny(**options).updated(data="synthetic")
    run = start(configuration, SHARDS.graphs, tmp_path / "run")
    again = open_run(tmp_path / "run", data=SHARDS)
    np.testing.assert_array_equal(run.shards[0].train, again.shards[0].train)
    assert len(run.shards[0].train) < len(SHARDS[0].train)
