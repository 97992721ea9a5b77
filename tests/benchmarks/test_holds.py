"""The measurement of what a copy holds: the truth is the truth, and the estimate does not see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import holds
from fedkge.graph.synthetic import synthetic_graph

GRAPH = synthetic_graph(entities=200, relations=5, triples=4000, seed=3)


def test_a_clear_copy_holds_everything_and_a_noisy_one_less() -> None:
    clear, noisy = (holds.measure(GRAPH, epsilon, seed=1) for epsilon in (100.0, 5.0))
    assert clear["share"] == clear["precision"] == 1.0
    assert 0.3 < noisy["share"] < 1
    assert 0.5 < noisy["precision"] < 1
    assert noisy["estimated_share"] == pytest.approx(noisy["share"], abs=0.1)
    assert noisy["estimated_precision"] == pytest.approx(noisy["precision"], abs=0.1)


def test_duplicates_are_one_triple() -> None:
    twice = replace(GRAPH, train=np.concatenate([GRAPH.train, GRAPH.train]))
    assert holds.measure(twice, 8.0, seed=1)["triples"] == len(np.unique(GRAPH.train, axis=0))


def test_the_table_is_printed_for_the_graphs_that_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(holds, "load", lambda name: replace(GRAPH, name=name))
    monkeypatch.setattr(holds, "EPSILONS", (2.0, 8.0))
    assert holds.main(["--graph", "here", "--no-save"]) == 0
    assert capsys.readouterr().out.count("here") == 6
