"""The auditor's own score: it finds what an undefended run gives away, and never looks at the coins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkge as fk
from fedkge.audit import right_guesses
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.experiments.white_box import canaries_of, white_box_scores
from fedkge.runs.run import Run

SHARDS = fk.split(fk.synthetic_graph(entities=150, relations=12, triples=900, seed=1), clients=2, overlap=0.8)
OPTIONS: dict[str, Any] = {
    "rounds": 3,
    "dimension": 16,
    "negatives": 8,
    "learning_rate": 0.01,
    "evaluate_every": 0,
    "threads": 1,
    "seed": 3,
    "canaries": 200,
    "canary_coins": "seeded",
    "canary_source": "victim",
    "record": "all",
}


def train(folder: Path, **options: Any) -> Run:
    return fk.train(SHARDS, out=folder, **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("white-box") / "run")


def test_an_undefended_run_tells_nearly_all_coins(run: Run) -> None:
    canaries = canaries_of(run)
    right = right_guesses(white_box_scores(run, canaries), canaries.members, 100, np.random.default_rng(1))
    assert right >= 95


def test_the_coins_are_not_read(run: Run) -> None:
    canaries = canaries_of(run)
    others = replace(canaries, members=~canaries.members)
    np.testing.assert_array_equal(white_box_scores(run, canaries), white_box_scores(run, others))


@pytest.mark.parametrize("negatives", ["inside", "public"])
def test_a_defended_run_tells_less(negatives: str, tmp_path: Path) -> None:
    noisy = {"defence": "dpsgd", "epsilon": 0.5, "private_negatives": negatives, "batch_size": 256, "local_epochs": 1}
    defended = train(tmp_path / "run", **noisy)
    canaries = canaries_of(defended)
    right = right_guesses(white_box_scores(defended, canaries), canaries.members, 100, np.random.default_rng(1))
    assert right <= 70  # by chance above it: 1 in 60,000


def test_rounds_without_a_beginning_are_refused(tmp_path: Path) -> None:
    sparse = train(tmp_path / "run", rounds=4, record="2,4")
    with pytest.raises(RunError, match="--record all"):
        white_box_scores(sparse, canaries_of(sparse))


def test_a_run_without_canaries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--canaries"):
        canaries_of(train(tmp_path / "run", rounds=1, canaries=0))
