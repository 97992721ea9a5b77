"""`fedkge tune`: the best options on stdout and as a file for `train --config`; never under a defence."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedkge as fk
from tests.end_to_end.test_command_line import fedkge, write_graph

FAST = ("--rounds", 1, "--dimension", 8, "--negatives", 8, "--threads", 1, "--seed", 3)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graph(tmp_path_factory.mktemp("data") / "my-graph", fk.synthetic_graph(60, 4, 500, seed=1))


def test_the_best_options_can_be_trained_with(graph: Path, tmp_path: Path) -> None:
    found = fedkge("tune", "--data", graph, *FAST, "--trials", 2, "--out", tmp_path / "best.toml", "--json")
    assert found.code == 0, found.err
    best = found.lines[0]["best"]
    assert best["dimension"] == 8
    assert 1e-4 <= best["learning_rate"] <= 1e-1
    assert len(found.lines[0]["trials"]) == 2
    trained = fedkge("train", "--config", tmp_path / "best.toml", "--out", tmp_path / "run", "--json")
    assert trained.code == 0, trained.err
    again = fedkge("tune", "--data", graph, *FAST, "--trials", 1, "--out", tmp_path / "best.toml")
    assert again.code == 6
    assert "say --overwrite" in again.err


def test_people_get_a_table(graph: Path) -> None:
    found = fedkge("tune", "--data", graph, *FAST, "--trials", 2)
    assert found.code == 0, found.err
    assert "2 trials; best validation MRR" in found.out
    assert "trial 2: validation MRR" in found.err


def test_a_defence_is_refused(graph: Path) -> None:
    found = fedkge("tune", "--data", graph, *FAST, "--epsilon", 8)
    assert found.code == 8
    assert "Tune on a public graph" in found.err
