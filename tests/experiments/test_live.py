"""Attacks as the federation goes: the same result as afterwards, told round by round."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedkge.api.training import start
from fedkge.experiments.cia import CIA
from fedkge.experiments.experiment import RESULTS, AttackPlan, run_attacks
from fedkge.experiments.exposed import EXPOSED
from fedkge.experiments.live import LiveAttacks
from tests.experiments.test_recorded_views import SHARDS, tiny

PLAN = AttackPlan(attacks=("si-link", "si-centres", "cip", "cia"), every=2, count=30, calibration=10, cia=CIA(20, 2))


@pytest.mark.parametrize("rounds", [4, 5])
def test_live_results_are_those_of_the_finished_run(tmp_path: Path, rounds: int) -> None:
    told: list[str] = []
    live = LiveAttacks(lambda _: PLAN, told.append)
    run = start(tiny(rounds=rounds, canaries=60), SHARDS.graphs, tmp_path / "run", observer=live)
    attacked = {2, 4, rounds}
    assert {number for _, _, number in live.memory} == attacked
    assert {line.split(" attacked")[0] for line in told} == {f"round {number}" for number in attacked}
    assert any("design C, AUC: si-link 0." in line and "cia 0." in line for line in told)
    files = [tmp_path / "run" / name for name in (RESULTS, EXPOSED)]
    first = [path.read_bytes() for path in files]
    outcomes = run_attacks(run, PLAN, memory=live.memory)
    assert run_attacks(run, PLAN) == outcomes
    assert [path.read_bytes() for path in files] == first


def test_nothing_is_scored_twice(tmp_path: Path) -> None:
    live = LiveAttacks(lambda _: PLAN, lambda _: None)
    run = start(tiny(rounds=2, canaries=60), SHARDS.graphs, tmp_path / "run", observer=live)
    for scores in live.memory.values():
        scores[:] = range(len(scores))  # would show in the outcomes if they were not taken from here
    changed = run_attacks(run, PLAN, memory=live.memory)
    assert changed != run_attacks(run, PLAN)


def test_what_cannot_be_attacked_yet_does_not_stop_the_federation(tmp_path: Path) -> None:
    told: list[str] = []
    live = LiveAttacks(lambda _: replace(PLAN, count=10_000), told.append)
    run = start(tiny(rounds=2, canaries=60), SHARDS.graphs, tmp_path / "run", observer=live)
    assert run.metrics
    assert "round 2 could not be attacked yet: design A" in told[0]


def test_what_waits_for_the_end_is_not_attacked_live(tmp_path: Path) -> None:
    told: list[str] = []
    live = LiveAttacks(lambda _: replace(PLAN, attacks=("lira",)), told.append)
    start(tiny(rounds=2, canaries=60), SHARDS.graphs, tmp_path / "run", observer=live)
    assert (told, live.memory) == ([], {})


def test_results_hold_link_and_triple_and_changed_rows(tmp_path: Path) -> None:
    run = start(tiny(rounds=4, canaries=60), SHARDS.graphs, tmp_path / "run")
    outcomes = run_attacks(run, PLAN)
    content = json.loads((tmp_path / "run" / RESULTS).read_text())
    assert [(entry["design"], entry["round"]) for entry in content["si"]] == [
        (design, number) for number in (2, 4) for design in "ABCD"
    ]
    for entry in content["si"]:
        for key, attack in (("link_auc", "si-link"), ("triple_auc", "si-centres")):
            (one,) = (o for o in outcomes if (o.attack, o.design, o.round) == (attack, entry["design"], entry["round"]))
            assert entry[key] == one.metrics["auc"]
    own = len(run.shards[0].entities)
    assert [(count["round"], count["known"]) for count in content["rows_changed"]] == [(2, own), (4, own)]
    assert all(0 < count["changed"] <= own for count in content["rows_changed"])
