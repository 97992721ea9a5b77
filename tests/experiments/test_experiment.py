"""The experiment: one outcome per attack, adversary, design and round, kept whole, with errors that say what to do."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.attacks import ATTACKS, make_attack
from fedkge.attacks.lira import online
from fedkge.audit.metrics import attack_metrics
from fedkge.base.errors import ConfigurationError, DataError, FedkgeError, RunError
from fedkge.experiments.attacking.active import CIA_ATTACKS
from fedkge.experiments.cia import CIA
from fedkge.experiments.experiment import (
    RESULTS,
    AttackPlan,
    Outcome,
    attacked_rounds,
    best_round,
    fitting_attacks,
    grouped,
    known_attacks,
    read_results,
    run_attacks,
    targets_of,
)
from fedkge.experiments.recorded_views import recorded_view
from fedkge.experiments.shadows import ShadowPlan, shadow_scores
from fedkge.experiments.targets import Targets, auxiliary_triples, pool_of
from fedkge.experiments.targets.canaries import CANARIES
from fedkge.experiments.targets.files import read_targets
from fedkge.runs.run import Run
from tests.experiments.test_recorded_views import record

SMALL = AttackPlan(every=2, count=30, calibration=10, cia=CIA(20), threads=2)
FILES = [f"targets-{design}.jsonl" for design in "ABD"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return record(tmp_path_factory.mktemp("experiment") / "run", canaries=60)


@pytest.fixture(scope="module")
def outcomes(run: Run) -> list[Outcome]:
    return run_attacks(run, SMALL)


def folder_of(run: Run) -> Path:
    assert run.directory is not None
    return run.directory


def copy_of(run: Run, folder: Path) -> Run:
    """The same run in a folder that a test may fill with files of its own."""
    shutil.copytree(folder_of(run), folder / "copy")
    for name in (*FILES, RESULTS):
        (folder / "copy" / name).unlink(missing_ok=True)
    return replace(run, directory=folder / "copy")


@given(st.sets(st.integers(1, 60), min_size=1).map(sorted), st.integers(1, 20))
def test_attacked_rounds_are_the_multiples_and_the_last(recorded: list[int], every: int) -> None:
    chosen = attacked_rounds(recorded, every)
    assert chosen == [n for n in recorded if n % every == 0 or n == recorded[-1]]


def test_one_outcome_per_attack_adversary_design_and_round(outcomes: list[Outcome]) -> None:
    adversaries = {name: attack.needs.adversary for name, attack in ATTACKS.items()} | dict.fromkeys(
        CIA_ATTACKS, ("client",)
    )
    expected = [
        (name, kind, design, number)
        for name, kinds in adversaries.items()
        for kind in kinds
        for design in "ABCD"
        for number in (2, 3)
    ]
    found = Counter((one.attack, one.adversary, one.design, one.round) for one in outcomes)
    assert found == Counter(expected)
    for group in grouped(outcomes).values():
        assert [outcome.round for outcome in group] == [2, 3]


def test_metrics_are_those_of_the_scores(run: Run, outcomes: list[Outcome]) -> None:
    """Done again by hand for one attack on every design, each alone."""
    for design in "ABCD":
        targets = targets_by_name(run, design)
        view = recorded_view(run, "client", "client-0", "client-1").until(2)
        attack = make_attack("cip")
        calibration = {
            "calibration_scores": attack.score(view, targets.calibration_triples),
            "calibration_members": targets.calibration_members,
        }
        few = len(targets.calibration_triples) == 0
        assert few == (design == "B")  # the victim holds out too little
        scores = attack.score(view, targets.triples)
        metrics = attack_metrics(scores, targets.members, **({} if few else calibration))
        (outcome,) = (one for one in outcomes if (one.attack, one.design, one.round) == ("cip", design, 2))
        assert outcome.metrics == metrics.as_dict()
        assert outcome.metrics["floor_f1"] == pytest.approx(2 / 3)
        assert outcome.metrics["members"] == outcome.metrics["non_members"] == (11 if design == "B" else 30)
        assert (outcome.metrics["calibrated_f1"] is None) == few


def targets_by_name(run: Run, design: str) -> Targets:
    path = folder_of(run) / (CANARIES if design == "C" else f"targets-{design}.jsonl")
    return read_targets(path, run.entities, run.relations)


def test_results_on_disk_are_the_outcomes(run: Run, outcomes: list[Outcome]) -> None:
    content = json.loads((folder_of(run) / RESULTS).read_text(encoding="utf-8"))
    assert content["format"] == 1
    assert content["plan"]["count"] == 30
    assert content["plan"]["cia"]["group_size"] == 20
    kept = read_results(folder_of(run) / RESULTS)
    assert len(kept) == len(outcomes)
    by_key = {(one.attack, one.adversary, one.design, one.round): one for one in kept}
    for outcome in outcomes:
        found = by_key[outcome.attack, outcome.adversary, outcome.design, outcome.round].metrics
        plain = json.loads(json.dumps(outcome.metrics))
        assert {key: value for key, value in plain.items() if key != "roc"} == {
            key: value for key, value in found.items() if key != "roc"
        }
        assert found.get("roc", plain["roc"]) == plain["roc"]


def test_roc_points_are_kept_for_the_best_and_the_last_round_only(run: Run, tmp_path: Path) -> None:
    other = copy_of(run, tmp_path)
    made = run_attacks(other, replace(SMALL, attacks=("cip", "trajectory"), every=1))
    assert all("roc" in outcome.metrics for outcome in made)
    left_out = 0
    for group in grouped(read_results(folder_of(other) / RESULTS)).values():
        shown = {best_round(group).round, 3}
        assert {outcome.round for outcome in group if "roc" in outcome.metrics} == shown
        left_out += 3 - len(shown)
    assert left_out > 0


def test_the_best_round_has_the_highest_f1() -> None:
    rounds = [
        Outcome("cip", "client", "C", n, {"best_f1": {"value": f1}}) for n, f1 in ((5, 0.7), (10, 0.9), (15, 0.8))
    ]
    assert best_round(rounds).round == 10


def test_targets_stay_fixed_whatever_else_is_asked(run: Run, outcomes: list[Outcome], tmp_path: Path) -> None:
    other = copy_of(run, tmp_path)
    first = {name: (folder_of(run) / name).read_bytes() for name in FILES}
    targets_of(other, SMALL)
    assert {name: (folder_of(other) / name).read_bytes() for name in FILES} == first
    targets_of(other, replace(SMALL, designs=("D",)))
    targets_of(other, replace(SMALL, designs=("B", "A")))
    assert {name: (folder_of(other) / name).read_bytes() for name in FILES} == first
    targets_of(other, replace(SMALL, seed=1))
    assert all((folder_of(other) / name).read_bytes() != content for name, content in first.items())


def test_a_second_time_gives_the_same_outcomes(run: Run, outcomes: list[Outcome], tmp_path: Path) -> None:
    other = copy_of(run, tmp_path)
    told: list[tuple[str, int, int]] = []
    plan = replace(SMALL, attacks=("upload-difference", "cia"))
    again = run_attacks(other, plan, lambda *fact: told.append(fact))
    wanted = [outcome for outcome in outcomes if outcome.attack in plan.attacks]
    assert again == wanted
    assert told[0] == ("upload-difference, round 2", 0, 4)
    assert told[-1] == ("done", 4, 4)


def test_targets_never_hold_canaries_and_auxiliary_triples_no_targets(run: Run, outcomes: list[Outcome]) -> None:
    targets = {design: targets_by_name(run, design) for design in "ABCD"}
    canaries = set(map(tuple, targets["C"].everything.tolist()))
    for design in "ABD":
        assert not canaries & set(map(tuple, targets[design].everything.tolist()))
    random = np.random.default_rng(1)
    granted = auxiliary_triples(run.shards[0], targets.values(), run.entities, run.relations, random, 20)
    taken = {triple for one in targets.values() for triple in map(tuple, one.everything.tolist())}
    assert len(granted) > 0
    assert not taken & set(map(tuple, granted.tolist()))


def test_design_b_takes_as_many_held_out_triples_as_there_are(run: Run, tmp_path: Path) -> None:
    other = copy_of(run, tmp_path)
    pool = pool_of(run.shards[0], run.shards[1], run.shards, run.entities, run.relations)
    assert 2 < len(pool.held_out) < 200
    targets = targets_of(other, replace(SMALL, designs=("B",), count=200))["B"]
    assert int(targets.members.sum()) == int((~targets.members).sum()) == len(pool.held_out)
    assert len(targets.calibration_triples) == 0
    (outcome,) = run_attacks(other, replace(SMALL, attacks=("cip",), designs=("B",), count=200, every=9))
    assert outcome.metrics["calibrated_f1"] is None


@pytest.mark.parametrize(("calibration", "calibrated"), [(0, False), (1, False), (2, True)])
def test_a_threshold_needs_two_calibration_triples_of_each_kind(
    run: Run, tmp_path: Path, calibration: int, calibrated: bool
) -> None:
    plan = replace(SMALL, attacks=("cip",), designs=("A",), calibration=calibration, every=9)
    (outcome,) = run_attacks(copy_of(run, tmp_path), plan)
    assert (outcome.metrics["calibrated_f1"] is not None) == calibrated


def test_design_b_without_held_out_triples_says_so(run: Run, tmp_path: Path) -> None:
    empty = np.empty((0, 3), np.int32)
    shards = tuple(replace(shard, valid=empty, test=empty) for shard in run.shards)
    bare = replace(copy_of(run, tmp_path), shards=shards)
    with pytest.raises(DataError, match=r"design B: held-out triples of .*: expected at least 2 .* got 0"):
        targets_of(bare, replace(SMALL, designs=("B",)))


def refused(run: Run, kind: type[FedkgeError], code: int, text: str, **changes: Any) -> None:
    with pytest.raises(kind, match=text) as caught:
        run_attacks(run, replace(SMALL, **changes))
    assert caught.value.exit_code == code


def test_plans_that_do_not_fit_the_run_are_refused(run: Run, tmp_path: Path) -> None:
    run = copy_of(run, tmp_path)
    refused(run, ConfigurationError, 4, "unknown attack 'cpi'.*cip", attacks=("cpi",))
    refused(run, ConfigurationError, 4, "LiRA works on canaries.*--targets C", attacks=("lira",), designs=("A",))
    base = ShadowPlan("uploaddifference", 2)
    refused(run, ConfigurationError, 4, "upload-difference", attacks=("lira",), shadows=base)
    refused(run, ConfigurationError, 4, "no client 'client-8'", victim="client-8", designs=("A",))
    refused(run, ConfigurationError, 4, "canaries are for victim client-0 and adversary client-1", adversary="client-2")
    refused(run, ConfigurationError, 4, "both client-0", adversary="client-0", designs=("A",), attacks=("cip",))
    refused(run, ConfigurationError, 4, "set --auxiliary to at least 1", auxiliary=0, attacks=("si-centres",))
    refused(run, DataError, 3, r"smaller --targets-count", count=100_000, designs=("A",))
    refused(replace(run, directory=None), ConfigurationError, 4, "train with --out")
    assert not (folder_of(run) / RESULTS).exists()


def test_canaries_and_a_record_are_needed(tmp_path: Path) -> None:
    bare = record(tmp_path / "bare", rounds=1, record="none")
    refused(bare, ConfigurationError, 4, "train with --canaries 1000, or attack with --targets A,B,D", designs=("C",))
    refused(bare, RunError, 6, "nothing was recorded; train with --record", designs=("A",))


@pytest.mark.parametrize("strategy", ["pooled", "isolated", "fedr"])
def test_only_shared_entities_can_be_attacked(tmp_path: Path, strategy: str) -> None:
    other = record(tmp_path / strategy, rounds=1, strategy=strategy)
    refused(other, ConfigurationError, 4, "strategy fede", designs=("A",), attacks=("cip",))


@pytest.mark.parametrize("model", ["distmult", "complex"])
def test_si_is_refused_on_bilinear_models_and_not_among_the_fitting(tmp_path: Path, model: str) -> None:
    other = record(tmp_path / model, model=model, canaries=60, rounds=1)
    refused(other, ConfigurationError, 4, "'si-centres' works on TransE and RotatE", attacks=("si-centres",))
    refused(
        other,
        ConfigurationError,
        4,
        "works on TransE and RotatE",
        attacks=("lira",),
        shadows=ShadowPlan("si-centres", 2),
    )
    fitting = fitting_attacks(other)
    assert set(fitting) == {name for name in ATTACKS if not name.startswith("si-")} - {"cip-distance-ratio"} | set(
        CIA_ATTACKS
    )
    made = run_attacks(other, replace(SMALL, attacks=tuple(fitting), designs=("C",)))
    assert [outcome.attack for outcome in made] == fitting


def test_every_name_is_known(run: Run) -> None:
    assert known_attacks() == [
        *ATTACKS,
        "cia",
        "cia-matched",
        "cia-published",
        "cia-inline",
        "lira",
        "lira-offline",
        "shadow",
    ]
    assert set(fitting_attacks(run)) == {*ATTACKS, *CIA_ATTACKS}


def test_a_server_attack_needs_no_round_of_the_adversary_client(tmp_path: Path) -> None:
    few = record(tmp_path / "few", fraction=0.34, rounds=4)
    view = recorded_view(few, "server", "client-0", "client-1")
    there = [name for name in few.clients if any(is_there(few, number, name) for number in view.rounds)]
    absent = [name for name in few.clients if name not in there]
    victim, adversary = there[0], (absent or there[1:])[0]
    plan = replace(SMALL, attacks=("upload-difference",), designs=("A",), victim=victim, adversary=adversary)
    assert {outcome.adversary for outcome in run_attacks(few, plan)} == {"server"}


def is_there(run: Run, number: int, name: str) -> bool:
    return recorded_view(run, "server", name, name).holds(number, "upload")


def test_lira_goes_through_the_shadows(run: Run, tmp_path: Path) -> None:
    other = copy_of(run, tmp_path)
    plan = replace(
        SMALL, attacks=("lira", "lira-offline"), designs=("A", "C"), shadows=ShadowPlan("cip-collusion", 2, 2)
    )
    made = run_attacks(other, plan)
    assert [(one.attack, one.adversary, one.design, one.round) for one in made] == [
        (name, "collusion", "C", number) for number in (2, 3) for name in ("lira", "lira-offline")
    ]
    targets = targets_of(other, plan)
    random = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(99,)))
    auxiliary = auxiliary_triples(run.shards[0], targets.values(), run.entities, run.relations, random, 20)
    shadows = shadow_scores(other, targets["C"], auxiliary, plan.shadows)
    view = recorded_view(other, "collusion", "client-0", "client-1", auxiliary)
    observed = make_attack("cip-collusion").score(view.until(2), targets["C"].everything)
    scores = online(observed, shadows[2])[: len(targets["C"])]
    expected = attack_metrics(scores, targets["C"].members).as_dict()
    assert made[0].metrics["auc"] == expected["auc"]
    assert made[0].metrics["roc"] == expected["roc"]
