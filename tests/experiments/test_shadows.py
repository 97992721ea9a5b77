"""Shadow federations: fair complementary coins, kept on disk, and the same as a federation run by hand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedkge.api.training import start
from fedkge.attacks import make_attack
from fedkge.attacks.lira import Shadows
from fedkge.experiments.recorded_views import recorded_view
from fedkge.experiments.shadows import FOLDER, STREAM, ShadowPlan, shadow_coins, shadow_scores, without_canaries
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import CANARIES, insert_canaries
from fedkge.experiments.targets.files import read_targets
from fedkge.graph import Graph, Triples
from fedkge.runs.run import Run
from tests.experiments.test_recorded_views import SHARDS, record

BASE = "upload-difference"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return record(tmp_path_factory.mktemp("shadows") / "run", canaries=40, rounds=2)


@pytest.fixture(scope="module")
def canaries(run: Run) -> Targets:
    assert run.directory is not None
    return read_targets(run.directory / CANARIES, run.entities, run.relations)


@pytest.fixture(scope="module")
def auxiliary(run: Run) -> Triples:
    return run.shards[0].train[:60]  # client-0's own numbers are the run's: it comes first


@pytest.fixture(scope="module")
def scores(run: Run, canaries: Targets, auxiliary: Triples) -> dict[int, Shadows]:
    return shadow_scores(run, canaries, auxiliary, ShadowPlan(BASE, 2, 2))


def kept(run: Run) -> dict[str, tuple[int, str]]:
    assert run.directory is not None
    files = sorted((run.directory / FOLDER).iterdir())
    return {path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files}


@pytest.mark.parametrize("seed", [0, 5])
def test_coins_come_in_complementary_fair_pairs(seed: int) -> None:
    coins = np.stack([shadow_coins(seed, number, 2000) for number in range(6)])
    for pair in (0, 2, 4):
        np.testing.assert_array_equal(coins[pair], ~coins[pair + 1])
        assert 0.45 < coins[pair].mean() < 0.55  # 4.5 standard deviations
        np.testing.assert_array_equal(coins[pair], shadow_coins(seed, pair, 2000))
    assert (coins.sum(axis=0) == 3).all()
    for one, other in ((0, 2), (2, 4), (0, 4)):
        assert 0.45 < (coins[one] == coins[other]).mean() < 0.55


def test_a_run_without_its_canaries_is_the_original_data(run: Run, canaries: Targets) -> None:
    bare = without_canaries(run, canaries)
    for shard, before in zip(bare.shards, SHARDS, strict=True):
        np.testing.assert_array_equal(shard.train, before.train)
    assert bare.tensors == {}
    assert len(run.shards[0].train) == len(SHARDS[0].train) + len(canaries.inserted)


def by_hand(run: Run, canaries: Targets, auxiliary: Triples, number: int, out: Path) -> dict[int, np.ndarray]:
    """Put the coins' canaries into the original shard by name, train, attack."""
    chosen = canaries.everything[shadow_coins(5, number, len(canaries.everything))]
    victim = SHARDS[0]
    added = [
        (
            victim.entities.id_of(run.entities[h]),
            victim.relations.id_of(run.relations[r]),
            victim.entities.id_of(run.entities[t]),
        )
        for h, r, t in chosen.tolist()
    ]
    first: Graph = replace(victim, train=np.concatenate([victim.train, np.array(added, np.int32)]))
    random = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(STREAM, number, 1)))
    options = run.configuration.updated(seed=int(random.integers(2**63)), canaries=0)
    shadow = start(options, (first, SHARDS[1], SHARDS[2]), out)
    view = recorded_view(shadow, "server", "client-0", "client-1", auxiliary)
    return {round_: make_attack(BASE).score(view.until(round_), canaries.everything) for round_ in view.rounds}


@pytest.mark.parametrize("number", [0, 1])
def test_scores_equal_a_federation_run_by_hand(
    run: Run, canaries: Targets, auxiliary: Triples, scores: dict[int, Shadows], tmp_path: Path, number: int
) -> None:
    assert sorted(scores) == [1, 2]
    expected = by_hand(run, canaries, auxiliary, number, tmp_path / "shadow")
    for round_, shadows in scores.items():
        assert shadows.scores.shape == shadows.coins.shape == (2, len(canaries.everything))
        np.testing.assert_array_equal(shadows.coins[number], shadow_coins(5, number, len(canaries.everything)))
        np.testing.assert_array_equal(shadows.scores[number], expected[round_])


def test_kept_shadows_are_not_trained_again(
    run: Run, canaries: Targets, auxiliary: Triples, scores: dict[int, Shadows]
) -> None:
    before, told = kept(run), []
    again = shadow_scores(run, canaries, auxiliary, ShadowPlan(BASE, 2), lambda *count: told.append(count))
    assert told == [(2, 2)]
    assert kept(run) == before
    assert len(before) == 2  # and no temporary folder was left
    for number, shadows in scores.items():
        np.testing.assert_array_equal(again[number].scores, shadows.scores)


def test_a_lost_shadow_is_trained_again_and_only_that_one(
    run: Run, canaries: Targets, auxiliary: Triples, scores: dict[int, Shadows]
) -> None:
    assert run.directory is not None
    before, told = kept(run), []
    lost = sorted(before)[1]
    (run.directory / FOLDER / lost).unlink()
    shadow_scores(run, canaries, auxiliary, ShadowPlan(BASE, 2), lambda *count: told.append(count))
    after = kept(run)
    assert told == [(1, 2), (2, 2)]
    assert {name: fact for name, fact in after.items() if name != lost} == {
        name: fact for name, fact in before.items() if name != lost
    }
    assert after[lost][1] == before[lost][1]
    assert after[lost][0] > before[lost][0]


def test_other_auxiliary_triples_get_shadows_of_their_own(
    run: Run, canaries: Targets, auxiliary: Triples, scores: dict[int, Shadows]
) -> None:
    before = kept(run)
    other = shadow_scores(run, canaries, auxiliary[:30], ShadowPlan(BASE, 2, 2))
    assert before.items() <= kept(run).items()
    assert len(kept(run)) == 4
    assert not np.array_equal(other[2].scores, scores[2].scores)


def test_the_victims_canaries_are_what_insertion_made(run: Run, canaries: Targets) -> None:
    _, again = insert_canaries(SHARDS.graphs, run.configuration)
    assert again is not None
    np.testing.assert_array_equal(again.everything, canaries.everything)
