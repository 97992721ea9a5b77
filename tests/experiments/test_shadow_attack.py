"""The shadow attack on real triples: it finds a leak, is at chance where there is none, and reads only its view."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.api.training import start
from fedkge.audit.metrics import auc
from fedkge.base.errors import ConfigurationError
from fedkge.defences import parse
from fedkge.defences.counts.released import CountPlan, ReleasedCounts
from fedkge.experiments.audited_release import auditors_triples
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.experiments.exposed import EXPOSED
from fedkge.experiments.recorded_audit import run_audit
from fedkge.experiments.shadow_attack import SHADOWS, attack_by_shadows
from fedkge.experiments.shadow_features import (
    COPY,
    MEASURES,
    MODEL,
    SEEN_BY,
    UPLOADS,
    measure,
    unexplained_counts,
    variants_of,
)
from fedkge.experiments.shadows import FOLDER, ShadowPlan
from fedkge.experiments.targets import Targets
from fedkge.experiments.white_box import canaries_of
from fedkge.graph.ordered import ordered
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.noise import NoiseSource
from fedkge.runs.run import Run
from tests.experiments.test_recorded_views import TINY

GRAPH = synthetic_graph(entities=150, relations=5, triples=5000, seed=1)
TWO = split(GRAPH, clients=2, by="entity", seed=3, overlap=0.6)
BOTH = ShadowPlan("shadow", 2, 2)


def trained(folder: Path, **options: Any) -> Run:
    common = {"clients": 2, "rounds": 4, "dimension": 16, "canaries": 600, "canary_source": "real", "margin": 4.0}
    return start(parse({**TINY, **common, "canary_coins": "seeded", **options}), TWO.graphs, folder)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("shadow") / "run", local_epochs=20, dimension=32, margin=8.0)


@pytest.fixture(scope="module")
def defended(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("shadow") / "run", defence="recommended", epsilon=8.0, noise_seed=3)


@pytest.fixture(scope="module")
def found(bare: Run) -> dict[str, np.ndarray]:
    return attack_by_shadows(bare, canaries_of(bare), BOTH)


@pytest.fixture(scope="module")
def found_defended(defended: Run) -> dict[str, np.ndarray]:
    return attack_by_shadows(defended, canaries_of(defended), BOTH)


def test_without_a_defence_uploads_and_model_give_membership_away(bare: Run, found: dict[str, np.ndarray]) -> None:
    assert list(found) == [UPLOADS, MODEL] == list(variants_of(bare))
    members = canaries_of(bare).members
    for scores in found.values():
        assert auc(scores, members).low > 0.6


def test_a_copy_of_epsilon_eight_gives_membership_away(defended: Run, found_defended: dict[str, np.ndarray]) -> None:
    assert list(found_defended) == [UPLOADS, MODEL, COPY] == list(variants_of(defended))
    members = canaries_of(defended).members
    areas = {name: auc(scores, members) for name, scores in found_defended.items()}
    assert areas[COPY].low > 0.9
    assert areas[COPY].value > max(areas[UPLOADS].value, areas[MODEL].value)
    assert areas[MODEL].low > 0.5


def test_a_budget_of_almost_nothing_leaves_it_at_chance(tmp_path: Path) -> None:
    """At epsilon 0.02 no adversary has an AUC above .51; intervals of 600 targets are about .09 wide."""
    run = trained(tmp_path / "run", defence="recommended", epsilon=0.02, noise_seed=4)
    members = canaries_of(run).members
    for scores in attack_by_shadows(run, canaries_of(run), BOTH).values():
        area = auc(scores, members, level=0.999)
        assert area.low <= 0.51
        assert area.high >= 0.49


def test_coins_that_the_run_never_saw_are_not_found(
    bare: Run, found: dict[str, np.ndarray], found_defended: dict[str, np.ndarray]
) -> None:
    other = np.random.default_rng(12).random(len(canaries_of(bare))) < 0.5
    for scores in (*found.values(), *found_defended.values()):
        area = auc(scores, other, level=0.999)
        assert area.low < 0.5 < area.high


def turned(targets: Targets) -> Targets:
    return replace(targets, members=~targets.members)


@pytest.mark.parametrize("which", ["bare", "defended"])
def test_no_coin_is_read(which: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(which)
    targets = canaries_of(run)
    one, two = measure(run, targets), measure(run, turned(targets))
    for name, features in one.items():
        assert features.shape[0] == len(targets)
        np.testing.assert_array_equal(features, two[name])


def test_what_is_known_beforehand_holds_no_target(defended: Run) -> None:
    """Otherwise a member would explain its own counts, and help to estimate its own relation."""
    targets = canaries_of(defended)
    known, candidates = ({tuple(row) for row in part.tolist()} for part in auditors_triples(defended, targets))
    before = {tuple(row) for row in ordered(TWO[0]).train.tolist()}  # as a defended run numbers names
    assert len(candidates) == len(targets)
    assert known == before - candidates


def test_counts_say_more_where_one_target_has_a_cell_for_itself() -> None:
    """Without noise: in moves a cell up by one half, out down; with four targets in a cell it is less, and shared."""
    triples = np.array([[0, 0, 5], [1, 0, 6], [2, 1, 7], [3, 1, 7], [4, 1, 7], [8, 1, 7]], np.int32)
    inside, known = triples[[0, 2, 3]], np.array([[9, 0, 5], [9, 1, 7]], np.int32)
    plan = CountPlan(profile_scale=0.1, typed_scale=0.1, types=1)
    counts = ReleasedCounts.draw(np.concatenate([inside, known]), 10, 2, plan, NoiseSource.research(1))
    tails, heads = unexplained_counts(counts, known, triples).T
    np.testing.assert_allclose(tails, [0.5, -0.5, 0.0, 0.0, 0.0, 0.0], atol=0.01)
    np.testing.assert_allclose(heads, [0.5, -0.5, 0.5, 0.5, -0.5, -0.5], atol=0.01)
    more = ReleasedCounts.draw(np.concatenate([triples[:3], known]), 10, 2, plan, NoiseSource.research(1))
    np.testing.assert_allclose(unexplained_counts(more, known, triples)[2:, 0], -1 / (1 + 3 / 4), atol=0.01)


def features_of(run: Run, variant: str, known_of: Run) -> np.ndarray:
    """One variant's features; what the adversary knows beforehand comes from an unspoiled run."""
    targets = canaries_of(known_of)
    return MEASURES[variant](run, targets.everything, *auditors_triples(known_of, targets))


@pytest.mark.parametrize(
    ("variant", "seen"),
    [
        (UPLOADS, r"transcript/.*/(broadcast|upload|result)-client-\d\.safetensors"),
        (MODEL, "the model is in memory"),
        (COPY, r"checkpoints/client-0\.safetensors"),
    ],
)
def test_garbage_in_place_of_all_that_it_does_not_see_changes_nothing(
    defended: Run, tmp_path: Path, variant: str, seen: str
) -> None:
    assert defended.directory is not None
    shutil.copytree(defended.directory, tmp_path / "spoiled")
    spoiled = 0
    for path in (tmp_path / "spoiled").rglob("*.*"):
        if path.is_file() and not re.fullmatch(seen, path.relative_to(tmp_path / "spoiled").as_posix()):
            path.write_text("garbage", encoding="utf-8")
            spoiled += 1
    assert spoiled > 10
    tensors = dict(defended.tensors)
    if variant != MODEL:  # who owns which row is known; no table is
        tensors = {name: table for name, table in tensors.items() if name.startswith("own/")}
    poor = replace(defended, directory=tmp_path / "spoiled", tensors=tensors)
    np.testing.assert_array_equal(features_of(poor, variant, defended), features_of(defended, variant, defended))


def test_shadows_draw_noise_of_their_own_and_are_kept(defended: Run, found_defended: dict[str, np.ndarray]) -> None:
    assert defended.directory is not None
    kept = {path: path.stat().st_mtime_ns for path in (defended.directory / FOLDER).iterdir()}
    assert len(kept) == 2
    again = attack_by_shadows(defended, canaries_of(defended), BOTH)
    assert kept == {path: path.stat().st_mtime_ns for path in (defended.directory / FOLDER).iterdir()}
    for name, scores in found_defended.items():
        np.testing.assert_array_equal(again[name], scores)


def test_outcomes_and_exposed_triples_are_named(defended: Run) -> None:
    assert defended.directory is not None
    names = ("si-centres", "cip", "shadow")
    outcomes = run_attacks(defended, AttackPlan(attacks=names, designs=("B", "R"), every=4, count=20, fewer=True))
    real = {one.attack: one for one in outcomes if one.design == "R"}
    assert {name: one.adversary for name, one in real.items()} == {"si-centres": "server", "cip": "client", **SEEN_BY}
    targets = canaries_of(defended)
    assert real[COPY].metrics["members"] + real[COPY].metrics["non_members"] == len(targets)
    assert real["cip"].metrics["members"] < real[COPY].metrics["members"]  # a client knows some names only
    found = json.loads((defended.directory / EXPOSED).read_text(encoding="utf-8"))["attacks"]
    copied = next(entry for entry in found if entry["attack"] == COPY)
    members = {tuple(row) for row in targets.triples[targets.members].tolist()}
    ids = {
        (defended.entities.id_of(head), defended.relations.id_of(relation), defended.entities.id_of(tail))
        for head, relation, tail in copied["found"]
    }
    assert len(ids) > 100
    assert ids <= members


def test_an_audit_takes_real_triples_too(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", defence="recommended", epsilon=8.0, canary_coins="independent")
    audit = run_audit(run)
    assert audit.result.canaries == 600
    assert audit.asked is not None
    assert audit.asked > 300
    assert 1.0 < audit.result.bound < 8.0


def test_it_is_refused_without_real_targets_and_for_an_odd_number_of_shadows(bare: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--canary-source real"):
        run_attacks(bare, AttackPlan(attacks=("shadow",), designs=("B",)))
    random = trained(tmp_path / "random", canary_source="victim", canaries=40)
    with pytest.raises(ConfigurationError, match="design R needs real triples"):
        run_attacks(random, AttackPlan(attacks=("shadow",), designs=("R",)))
    with pytest.raises(ConfigurationError, match="an even number of shadow federations"):
        run_attacks(bare, AttackPlan(attacks=("shadow",), designs=("R",), real_shadows=replace(SHADOWS, count=3)))
    with pytest.raises(ConfigurationError, match="design C needs canaries"):
        run_attacks(bare, AttackPlan(attacks=("si-centres",), designs=("C",)))
