"""The search for training options: repeatable, by validation triples alone, and never under a defence."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedkge as fk
from fedkge.base.errors import ConfigurationError, DataError, PrivacyError, UnavailableError
from fedkge.graph import no_triples

OPTIONS: dict[str, Any] = {"rounds": 3, "dimension": 8, "negatives": 8, "seed": 3, "threads": 1}
SPACE = {"learning_rate": fk.Range(1e-4, 1e-1, log=True), "batch_size": fk.Choice((16, 64))}


@pytest.fixture(scope="module")
def graph() -> fk.Graph:
    return fk.synthetic_graph(entities=60, relations=4, triples=600, seed=1)


def test_a_search_repeats_itself_and_its_options_give_what_it_found(graph: fk.Graph) -> None:
    first, second = (fk.tune(graph, trials=4, space=SPACE, **OPTIONS) for _ in range(2))
    assert [trial.value for trial in first.trials] == [trial.value for trial in second.trials]
    assert len({trial.options["learning_rate"] for trial in first.trials}) == 4
    assert all(1e-4 <= trial.options["learning_rate"] <= 1e-1 for trial in first.trials)
    assert {trial.options["batch_size"] for trial in first.trials} <= {16, 64}
    run = fk.train(graph, **first.options)
    assert run.evaluate("valid")["client-0"].metrics()["both.realistic.mrr"] == pytest.approx(first.best.value)
    assert first.rows()[0]["valid MRR"] == first.best.value == max(trial.value for trial in first.trials)
    assert repr(first).count("\n") <= 8


def test_test_triples_are_never_ranked(graph: fk.Graph) -> None:
    """Other test triples, the same values: they only filter, and these few filter nothing."""
    found = fk.tune(graph, trials=2, space=SPACE, **OPTIONS)
    without = replace(graph, test=no_triples(), elsewhere=graph.test)
    assert [one.value for one in fk.tune(without, trials=2, space=SPACE, **OPTIONS).trials] == [
        one.value for one in found.trials
    ]


def test_what_is_given_is_not_searched(graph: fk.Graph) -> None:
    tuned = fk.tune(graph, trials=1, **OPTIONS)
    assert set(tuned.trials[0].options) == {"learning_rate", "margin", "temperature"}


def test_a_federation_is_tuned_as_one(graph: fk.Graph) -> None:
    tuned = fk.tune(fk.split(graph, clients=2, seed=7, overlap=1.0), trials=1, space=SPACE, **OPTIONS)
    assert 0 < tuned.best.value <= 1


def test_whole_numbers_stay_whole(graph: fk.Graph) -> None:
    tuned = fk.tune(graph, trials=2, space={"batch_size": fk.Range(16, 64)}, **OPTIONS)
    assert all(isinstance(trial.options["batch_size"], int) for trial in tuned.trials)


@pytest.mark.parametrize("options", [{"epsilon": 8.0}, {"defence": "noisy-steps", "noise": 1.0}])
def test_a_defence_is_refused(graph: fk.Graph, options: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError, match="Tune on a public graph"):
        fk.tune(graph, trials=1, **{**OPTIONS, **options})


def test_a_defence_in_the_space_is_refused(graph: fk.Graph) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        fk.tune(graph, trials=1, space={"epsilon": fk.Range(1.0, 8.0)}, **OPTIONS)


def test_impossible_searches_say_what_to_do(graph: fk.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="trials: expected a number >= 1, got 0"):
        fk.tune(graph, trials=0, space=SPACE, **OPTIONS)
    with pytest.raises(ConfigurationError, match="both for negatives"):
        fk.tune(graph, trials=1, space={"negatives": fk.Choice((8, 16))}, **OPTIONS)
    with pytest.raises(ConfigurationError, match="did you mean learning-rate"):
        fk.tune(graph, trials=1, space={"learning_rat": fk.Choice((8, 16))}, **OPTIONS)
    with pytest.raises(DataError, match="expected validation triples"):
        fk.tune(replace(graph, valid=no_triples()), trials=1, space=SPACE, **OPTIONS)
    leaked = replace(graph, valid=np.ascontiguousarray(graph.train[:5]))
    with pytest.raises(DataError, match="not in train too"):
        fk.tune(leaked, trials=1, space=SPACE, **OPTIONS)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UnavailableError, match=r"pip install 'fedkge\[tune\]'"):
        fk.tune(graph, trials=1, space=SPACE, **OPTIONS)
