"""CIA within the federation: what is uploaded, what is seen, what survives a crash, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.api import training as runs
from fedkge.attacks.cia import disjoint_groups
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.experiments.attacking.active import InlineExperiment
from fedkge.experiments.experiment import AttackPlan, fitting_attacks, run_attacks
from fedkge.experiments.inline import PERIOD, STATE, inline_gain, periods, schedule
from fedkge.experiments.targets.canaries import CANARIES
from fedkge.experiments.targets.files import read_targets
from fedkge.federation.observer import Observer
from fedkge.models import Embedding, Tables
from fedkge.runs.round import Parties
from fedkge.runs.run import Run
from fedkge.runs.transcript import Transcript
from fedkge.store.durable_files import load_tensors
from tests.experiments.test_recorded_views import SHARDS, record, tiny

(INLINE,) = InlineExperiment().names
OPTIONS: dict[str, Any] = {"rounds": 2 * PERIOD + 1, "canaries": 40, "inline_attack": "cia"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return record(tmp_path_factory.mktemp("inline") / "run", **OPTIONS)


def folder_of(run: Run) -> Path:
    assert run.directory is not None
    return run.directory


def table(run: Run, number: int, kind: str) -> np.ndarray:
    """The adversary's rows of a recorded round in the run's numbering."""
    seen = Transcript(folder_of(run)).read(number, Parties.of("client-1"))
    rows = np.full((len(run.entities), run.configuration.model.dimension), np.nan, np.float32)
    rows[run.tensors["own/client-1"]] = getattr(seen, kind)["client-1"]["entities"]
    return rows


def test_groups_fit_the_rounds() -> None:
    targets = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 0, 0], [5, 0, 6]], np.int32)
    assert [periods(rounds) for rounds in (PERIOD, PERIOD + 1, 2 * PERIOD, 2 * PERIOD + 1)] == [0, 1, 1, 2]
    for count in (1, 2, 5):
        groups = schedule(targets, count)
        assert len(groups) <= count
        assert sorted(np.concatenate(groups).tolist()) == list(range(5))


def test_only_the_groups_rows_are_not_honest(run: Run) -> None:
    """Tails point the other way in the attacking round, and all rows of the group stand still while it waits."""
    canaries = read_targets(folder_of(run) / CANARIES, run.entities, run.relations).everything
    group = canaries[schedule(canaries, 2)[0]]
    honest = Transcript(folder_of(run)).read(1, Parties.of("client-1"))
    upload, sent = table(run, 1, "uploads"), table(run, 1, "broadcasts")
    tails = np.unique(group[:, 2])
    cosines = np.sum(upload[tails] * sent[tails], axis=1)
    others = np.setdiff1d(run.tensors["own/client-1"], tails)
    assert (cosines < 0).mean() > 0.9
    assert (np.sum(upload[others] * sent[others], axis=1) > 0).mean() > 0.9
    assert honest.number == 1
    held = np.unique(group[:, [0, 2]])
    for number in range(2, PERIOD + 1):
        np.testing.assert_array_equal(table(run, number, "uploads")[held], table(run, number, "broadcasts")[held])
        moved = table(run, number, "uploads") != table(run, number, "broadcasts")
        assert moved[np.setdiff1d(run.tensors["own/client-1"], held)].any()


def test_the_gain_is_that_of_the_rows_received(run: Run) -> None:
    canaries = read_targets(folder_of(run) / CANARIES, run.entities, run.relations).everything
    gain = inline_gain(folder_of(run))
    for place, group in enumerate(schedule(canaries, 2)):
        first = place * PERIOD + 1
        own = Transcript(folder_of(run)).read(first, Parties.of("client-1")).private["client-1"]["relations"]
        relations = np.zeros((len(run.relations), run.configuration.model.dimension), np.float32)
        relations[run.tensors["relation_ids/client-1"]] = own
        model = run.embedding("client-1")
        before, after = (
            Embedding(model.scorer, Tables(table(run, number, "broadcasts"), relations), model.margin).score_triples(
                np.ascontiguousarray(canaries[group])
            )
            for number in (first + 1, first + PERIOD)
        )
        np.testing.assert_allclose(gain[group], after - before, rtol=1e-4, atol=1e-4)


def test_it_is_an_attack_like_any_other(run: Run) -> None:
    assert INLINE in fitting_attacks(run)
    (outcome,) = run_attacks(run, AttackPlan(attacks=(INLINE,), designs=("C",)))
    assert (outcome.attack, outcome.adversary, outcome.design, outcome.round) == (INLINE, "client", "C", 7)
    assert outcome.metrics["members"] == 20
    with pytest.raises(ConfigurationError, match="works on canaries"):
        run_attacks(run, AttackPlan(attacks=(INLINE,), designs=("A",), count=20))


class Stop(Observer):
    def round_done(self, facts: Any) -> None:
        if facts["round"] == PERIOD + 1:
            raise KeyboardInterrupt


def test_a_resumed_run_goes_on_with_the_attack(run: Run, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        runs.start(tiny(**OPTIONS), SHARDS.graphs, tmp_path / "broken", observer=Stop())
    again = runs.resume(tmp_path / "broken", data=SHARDS)
    np.testing.assert_array_equal(again.tensors["entities"], run.tensors["entities"])
    np.testing.assert_array_equal(inline_gain(tmp_path / "broken"), inline_gain(folder_of(run)))


def test_the_price_is_measured_on_the_same_triples_without_the_attack(run: Run, tmp_path: Path) -> None:
    honest = record(tmp_path / "honest", **{**OPTIONS, "inline_attack": "none"})
    price = runs.price_of_attack(run)
    assert price == {
        "attacked": run.metrics[-1]["both.realistic.mrr"],
        "honest": honest.metrics[-1]["both.realistic.mrr"],
    }
    assert price["attacked"] != price["honest"]
    with pytest.raises(RunError, match="this run has no in-line attack"):
        inline_gain(tmp_path / "honest")
    with pytest.raises(RunError, match="test triples"):
        runs.price_of_attack(replace(run, metrics=()))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"canaries": 0}, "--canaries 1000"),
        ({"strategy": "isolated"}, "--strategy fede"),
        ({"fraction": 0.5}, "--fraction 1"),
        ({"rounds": PERIOD}, "at least 4 rounds"),
    ],
)
def test_what_it_needs(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=text):
        record(tmp_path / "run", **{**OPTIONS, **options})


def test_it_needs_a_run_directory_and_the_same_number_of_rounds(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a run directory"):
        runs.start(tiny(**OPTIONS), SHARDS.graphs)
    with pytest.raises(KeyboardInterrupt):
        runs.start(tiny(**OPTIONS), SHARDS.graphs, tmp_path / "broken", observer=Stop())
    config = tmp_path / "broken" / "config.toml"
    config.write_text(config.read_text().replace("rounds = 7", "rounds = 20"))
    with pytest.raises(RunError, match="planned for 7 rounds, got 20"):
        runs.resume(tmp_path / "broken", data=SHARDS)
    assert load_tensors(tmp_path / "broken" / STATE)[1] == {"rounds": 7}


def test_groups_are_those_of_the_forked_attack() -> None:
    targets = np.arange(30, dtype=np.int32).reshape(10, 3)
    assert [len(group) for group in schedule(targets, 3)] == [len(group) for group in disjoint_groups(targets, 4)]
