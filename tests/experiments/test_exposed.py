"""Which members an attack found: as many as its true-positive rate says, and every name a real member."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedkge.audit.metrics import tpr_at_fpr
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.experiments.exposed import EXPOSED, found_members
from fedkge.experiments.targets.files import read_targets
from tests.experiments.test_recorded_views import record


def test_as_many_are_found_as_the_true_positive_rate_says() -> None:
    random = np.random.default_rng(3)
    members = random.random(800) < 0.5
    scores = random.normal(size=800) + 2 * members
    rate = tpr_at_fpr(scores, members, 0.01)
    assert rate.value == pytest.approx(len(found_members(scores, members)) / members.sum())


def test_with_few_non_members_none_may_be_accused() -> None:
    scores, members = np.array([5.0, 4.0, 3.0, 2.0]), np.array([True, False, True, False])
    assert found_members(scores, members).tolist() == [0]


def test_every_name_is_a_member(tmp_path: Path) -> None:
    run = record(tmp_path / "run", canaries=60)
    run_attacks(run, AttackPlan(attacks=("cip", "si-centres"), designs=("C", "D"), count=30, calibration=10))
    content = json.loads((tmp_path / "run" / EXPOSED).read_text(encoding="utf-8"))
    assert {(entry["attack"], entry["design"]) for entry in content["attacks"]} == {
        (attack, design) for attack in ("cip", "si-centres") for design in "CD"
    }
    files = {"C": "canaries.jsonl", "D": "targets-D.jsonl"}
    for entry in content["attacks"]:
        targets = read_targets(tmp_path / "run" / files[entry["design"]], run.entities, run.relations)
        members = {tuple(row) for row in targets.triples[targets.members].tolist()}
        for head, relation, tail in entry["found"]:
            assert (run.entities.id_of(head), run.relations.id_of(relation), run.entities.id_of(tail)) in members
