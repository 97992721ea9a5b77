"""Canaries of an audit: whose names they have, who tossed their coins, and where these are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import DataError, RunError
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import CANARIES, insert_canaries
from fedkge.graph import HEAD, RELATION, TAIL, Graph, Vocabulary
from tests.experiments.test_recorded_views import SHARDS, tiny

ENTITIES = Vocabulary.union([shard.entities for shard in SHARDS])
RELATIONS = Vocabulary.union([shard.relations for shard in SHARDS])


def inserted(**options: Any) -> tuple[tuple[Graph, ...], Targets]:
    shards, canaries = insert_canaries(SHARDS.graphs, tiny(**{"canaries": 300, "canary_source": "victim", **options}))
    assert canaries is not None
    return shards, canaries


def test_coins_of_the_system_differ_under_one_seed_and_the_triples_do_not() -> None:
    one, two = (inserted(canary_coins="independent")[1] for _ in range(2))
    np.testing.assert_array_equal(one.triples, two.triples)
    assert (one.members != two.members).any()
    assert len(one.calibration_triples) == 0


def test_seeded_coins_repeat_and_are_not_a_fixed_half() -> None:
    one, two = (inserted(canary_coins="seeded")[1] for _ in range(2))
    np.testing.assert_array_equal(one.members, two.members)
    counts = {int(inserted(canary_coins="seeded", seed=seed)[1].members.sum()) for seed in range(12)}
    assert len(counts) > 3
    assert all(100 < count < 200 for count in counts)


def test_any_number_of_canaries() -> None:
    shards, canaries = inserted(canary_coins="independent", canaries=7)
    assert len(canaries) == 7
    assert len(shards[0].train) == len(SHARDS[0].train) + int(canaries.members.sum())


@pytest.mark.parametrize("source", ["victim", "rare", "shared", "likely"])
def test_canaries_have_the_victims_names_and_are_in_no_graph(source: str) -> None:
    _, canaries = inserted(canary_coins="seeded", canary_source=source, canaries=40)
    held = {
        (shard.entities[h], shard.relations[r], shard.entities[t])
        for shard in SHARDS
        for h, r, t in shard.all_triples.tolist()
    }
    for h, r, t in canaries.triples.tolist():
        assert (ENTITIES[h], RELATIONS[r], ENTITIES[t]) not in held
        assert {ENTITIES[h], ENTITIES[t]} <= set(SHARDS[0].entities)
        assert RELATIONS[r] in SHARDS[0].relations
    outside = [ENTITIES[end] not in SHARDS[1].entities for end in canaries.triples[:, [HEAD, TAIL]].ravel().tolist()]
    assert source == "rare" or any(outside) == (source != "shared")


def test_rare_names_are_rare() -> None:
    train = SHARDS[0].train
    degree = np.bincount(train[:, [HEAD, TAIL]].ravel(), minlength=len(SHARDS[0].entities))
    _, canaries = inserted(canary_coins="seeded", canary_source="rare", canaries=40)
    names = {ENTITIES[end] for end in canaries.triples[:, [HEAD, TAIL]].ravel().tolist()}
    seen = degree[[SHARDS[0].entities.id_of(name) for name in names]]
    assert seen.max() <= max(1, np.quantile(degree, 0.1))
    relations = np.bincount(train[:, RELATION], minlength=len(SHARDS[0].relations))
    rarest = SHARDS[0].relations[int(relations.argmin())]
    assert {RELATIONS[r] for r in canaries.triples[:, RELATION].tolist()} == {rarest}


def test_likely_names_go_with_their_relation() -> None:
    train = SHARDS[0].train
    _, canaries = inserted(canary_coins="seeded", canary_source="likely", canaries=200)
    entity, relation = SHARDS[0].entities.id_of, SHARDS[0].relations.id_of
    local = [
        (entity(ENTITIES[h]), relation(RELATIONS[r]), entity(ENTITIES[t])) for h, r, t in canaries.triples.tolist()
    ]
    assert len(set(local)) == 200
    for column in (HEAD, TAIL):
        together = set(map(tuple, train[:, [RELATION, column]].tolist()))
        assert all((triple[RELATION], triple[column]) in together for triple in local)


def test_likely_triples_do_not_follow_the_coins_and_may_be_too_few() -> None:
    one, two = (inserted(canary_coins="independent", canary_source="likely")[1] for _ in range(2))
    np.testing.assert_array_equal(one.triples, two.triples)
    half = inserted(canary_coins="half", canary_source="likely", canaries=100)[1]
    assert (int(half.members.sum()), len(half.calibration_triples)) == (50, 20)
    with pytest.raises(DataError, match=r"expected 20,000 likely triples of client-0 that nobody holds, found [\d,]+"):
        inserted(canary_source="likely", canaries=20_000)


def test_the_run_keeps_the_coins_and_is_opened_and_resumed_by_them(tmp_path: Path) -> None:
    options = tiny(canaries=60, canary_coins="independent", rounds=2)
    trained = start(options, SHARDS.graphs, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / CANARIES).read_text(encoding="utf-8").splitlines()[1:]]
    assert len(lines) == 60
    members = sum(line["member"] for line in lines)
    assert len(trained.shards[0].train) == len(SHARDS[0].train) + members
    for again in (open_run(tmp_path / "run", data=SHARDS), resume(tmp_path / "run", data=SHARDS)):
        np.testing.assert_array_equal(again.shards[0].train, trained.shards[0].train)


def test_lost_or_changed_coins_are_an_error(tmp_path: Path) -> None:
    start(tiny(canaries=60, canary_coins="independent", rounds=1), SHARDS.graphs, tmp_path / "run")
    path = tmp_path / "run" / CANARIES
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("false", "FALSE").replace("true", "false").replace("FALSE", "true"), encoding="utf-8")
    with pytest.raises(RunError, match="the run was trained on other data"):
        open_run(tmp_path / "run", data=SHARDS)
    path.unlink()
    with pytest.raises(RunError, match=r"canaries\.jsonl: missing, and the coins of an audit are nowhere else"):
        open_run(tmp_path / "run", data=SHARDS)
