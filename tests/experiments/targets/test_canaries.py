"""Canaries: the members are in the victim's training triples and nowhere else, and stay there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import ConfigurationError, DataError, RunError
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import CANARIES, insert_canaries, keep_canaries
from fedkge.experiments.targets.files import read_targets
from fedkge.federation.observer import Observer
from fedkge.graph import Graph, Triples, Vocabulary
from fedkge.graph.split import Shards, split
from tests.experiments.test_recorded_views import GRAPH, SHARDS, tiny

Named = tuple[str, str, str]
ENTITIES = Vocabulary.union([shard.entities for shard in SHARDS])
RELATIONS = Vocabulary.union([shard.relations for shard in SHARDS])


def names_of(triples: Triples, entities: Vocabulary = ENTITIES, relations: Vocabulary = RELATIONS) -> list[Named]:
    return [(entities[h], relations[r], entities[t]) for h, r, t in triples.tolist()]


def own_names(shard: Graph, triples: Triples) -> list[Named]:
    return names_of(triples, shard.entities, shard.relations)


def inserted(**options: object) -> tuple[tuple[Graph, ...], Targets]:
    shards, canaries = insert_canaries(SHARDS.graphs, tiny(canaries=60, **options))
    assert canaries is not None
    return shards, canaries


@pytest.mark.parametrize(("victim", "adversary"), [(0, 1), (2, 0)])
def test_members_are_the_victims_alone_and_the_others_nobodys(victim: int, adversary: int) -> None:
    shards, canaries = inserted(victim=f"client-{victim}", adversary=f"client-{adversary}")
    assert (len(canaries), int(canaries.members.sum())) == (60, 30)
    assert (len(canaries.calibration_triples), int(canaries.calibration_members.sum())) == (12, 6)
    everything = names_of(canaries.everything)
    members = names_of(canaries.inserted)
    assert len(set(everything)) == 72
    assert len(members) == 36
    for number, (before, after) in enumerate(zip(SHARDS, shards, strict=True)):
        assert (after.entities, after.relations) == (before.entities, before.relations)
        held = set(own_names(after, np.concatenate([after.train, after.valid, after.test])))
        assert held & set(everything) == (set(members) if number == victim else set())
        assert own_names(after, after.train)[: len(before.train)] == own_names(before, before.train)
        assert len(after.train) == len(before.train) + (36 if number == victim else 0)
    for head, relation, tail in everything:
        assert head != tail
        for shard in (SHARDS[victim], SHARDS[adversary]):
            assert head in shard.entities
            assert tail in shard.entities
            assert relation in shard.relations


def test_they_repeat_under_a_seed_and_only_then() -> None:
    one, two, other = (names_of(inserted(seed=seed)[1].everything) for seed in (5, 5, 6))
    assert one == two
    assert set(one) & set(other) != set(one)


def test_none_asked_for_none_inserted(tmp_path: Path) -> None:
    shards, canaries = insert_canaries(SHARDS.graphs, tiny())
    assert canaries is None
    assert all(after is before for after, before in zip(shards, SHARDS, strict=True))
    keep_canaries(tmp_path, canaries, shards)
    assert list(tmp_path.iterdir()) == []


class Stop(Observer):
    """Ends a training after its second round, as Ctrl-C would."""

    def round_done(self, facts: object) -> None:
        if facts["round"] == 2:  # type: ignore[index]
            raise KeyboardInterrupt


def test_resume_keeps_them_and_their_file(tmp_path: Path) -> None:
    path, options = tmp_path / "run", tiny(canaries=60, rounds=3)
    whole = start(options, SHARDS.graphs, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        start(options, SHARDS.graphs, path, observer=Stop())
    written = (path / CANARIES).read_bytes()
    resumed = resume(path, data=SHARDS)
    opened = open_run(path, data=SHARDS)
    assert (path / CANARIES).read_bytes() == written == (tmp_path / "whole" / CANARIES).read_bytes()
    kept = read_targets(path / CANARIES, opened.entities, opened.relations)
    expected = names_of(inserted()[1].everything)
    assert names_of(kept.everything, opened.entities, opened.relations) == expected
    for run in (whole, resumed, opened):
        assert len(run.shards[0].train) == len(SHARDS[0].train) + 36
        np.testing.assert_array_equal(run.shards[0].train, whole.shards[0].train)
        np.testing.assert_array_equal(run.tensors["entities"], whole.tensors["entities"])


def test_a_lost_file_is_written_again_by_resume(tmp_path: Path) -> None:
    start(tiny(canaries=60, rounds=1), SHARDS.graphs, tmp_path / "run")
    written = (tmp_path / "run" / CANARIES).read_bytes()
    (tmp_path / "run" / CANARIES).unlink()
    resume(tmp_path / "run", data=SHARDS)
    assert (tmp_path / "run" / CANARIES).read_bytes() == written


def test_other_data_is_refused_with_canaries_too(tmp_path: Path) -> None:
    start(tiny(canaries=60, rounds=1), SHARDS.graphs, tmp_path / "run")
    with pytest.raises(RunError, match="the run was trained on other data"):
        open_run(tmp_path / "run", data=split(GRAPH, clients=3, by="entity", seed=4, overlap=0.6))


def test_one_client_has_nobody_to_attack_it() -> None:
    with pytest.raises(ConfigurationError, match=r"no client 'client-1'.*canaries need two clients") as caught:
        insert_canaries((GRAPH,), tiny(canaries=60, clients=1))
    assert caught.value.exit_code == 4


def test_victim_and_adversary_must_be_two_clients_of_the_run() -> None:
    with pytest.raises(ConfigurationError, match="victim and adversary are both client-1: choose two clients"):
        inserted(victim="client-1")
    with pytest.raises(ConfigurationError, match="no client 'client-9': expected one of client-0, client-1, client-2"):
        inserted(victim="client-9")
    with pytest.raises(ConfigurationError, match="no client 'nobody'"):
        inserted(adversary="nobody")


def test_too_small_an_overlap_says_what_to_change() -> None:
    apart: Shards = split(GRAPH, clients=3, by="entity", seed=3, overlap=0.0)
    with pytest.raises(
        DataError, match=r"design C: random triples in no graph: expected at least 60.*larger --overlap"
    ):
        insert_canaries(apart.graphs, tiny(canaries=60))
    with pytest.raises(DataError, match=r"expected at least 100,000.*got \d"):
        insert_canaries(SHARDS.graphs, tiny(canaries=100_000))
