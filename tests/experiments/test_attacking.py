"""The registry: an attack that is added by one line is known everywhere, and nothing else has to hear of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fedkge.attacks import ATTACKS, Needs
from fedkge.attacks.attack import Scores
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.experiments.attacking import Job, Setting, attack_experiments, find_experiment
from fedkge.experiments.attacking.registry import EXPERIMENTS
from fedkge.experiments.experiment import AttackPlan, fitting_attacks, known_attacks, run_attacks
from fedkge.experiments.outcomes import RESULTS, read_results
from fedkge.experiments.recorded_audit import fitting, run_audit
from fedkge.graph import Triples
from fedkge.runs.run import Run
from fedkge.runs.view import Adversary, View
from tests.experiments.test_recorded_views import record

PLAN = AttackPlan(designs=("C",), every=3)
NEEDS = Needs(adversary=("server", "client"))


@dataclass(frozen=True)
class ByHead:
    """A toy attack: it believes that entities with high numbers are members."""

    name: str = "by-head"
    needs: Needs = NEEDS

    def score(self, view: View, triples: Triples) -> Scores:
        assert view.holds(view.rounds[-1], "sent")
        return triples[:, 0].astype(np.float64)


@dataclass(frozen=True)
class ByTail:
    """A toy experiment: it takes no view at all, only on request, and never as the federation goes."""

    names: tuple[str, ...] = ("by-tail", "by-tail-reversed")
    models: tuple[str, ...] = ()
    live: bool = False

    def is_usual(self, run: Run) -> bool:
        return run.configuration.training.rounds > 100

    def check_training(self, configuration: Configuration) -> None:
        if configuration.experiment.canaries == 0:
            raise ConfigurationError("by-tail needs canaries")

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:  # noqa: ARG002
        return ()

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterator[Job]:
        tails = setting.targets["C"].everything[:, 2].astype(np.float64)
        scores = {"by-tail": tails, "by-tail-reversed": -tails}
        yield Job(
            tuple(names), "recipient", 3, {"C": setting.targets["C"]}, lambda _: {name: scores[name] for name in names}
        )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return record(tmp_path_factory.mktemp("attacking") / "run", canaries=60, canary_coins="seeded")


def test_a_passive_attack_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTACKS, "by-head", ByHead())
    assert "by-head" in known_attacks()
    assert "by-head" in fitting_attacks(run)
    found = [outcome for outcome in run_attacks(run, PLAN) if outcome.attack == "by-head"]
    assert [(one.adversary, one.round) for one in found] == [("server", 3), ("client", 3)]
    assert run.directory is not None
    assert {one.attack for one in read_results(run.directory / RESULTS)} >= {"by-head", "cip", "cia"}
    assert "by-head" in fitting(run.configuration)
    assert {one.attack for one in run_audit(run, ["by-head"], [10]).result.findings} == {
        "by-head (server)",
        "by-head (client)",
    }


def test_an_experiment_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedkge.experiments.attacking.registry.EXPERIMENTS", [*EXPERIMENTS, ByTail()])
    assert known_attacks()[-2:] == ["by-tail", "by-tail-reversed"]
    assert not {"by-tail", "by-tail-reversed"} & set(fitting_attacks(run))
    first, second = run_attacks(run, AttackPlan(("by-tail", "by-tail-reversed"), designs=("C",)))
    assert (first.attack, second.attack, first.adversary) == ("by-tail", "by-tail-reversed", "recipient")
    assert first.metrics["auc"]["value"] == pytest.approx(1 - second.metrics["auc"]["value"])
    with pytest.raises(ConfigurationError, match="by-tail needs canaries"):
        find_experiment("by-tail").check_training(Configuration.of())


def test_names_are_unique_and_lead_to_their_experiment() -> None:
    names = known_attacks()
    assert len(names) == len(set(names)) == len(ATTACKS) + sum(len(experiment.names) for experiment in EXPERIMENTS)
    assert all(name in experiment.names for name, experiment in attack_experiments().items())
    with pytest.raises(ConfigurationError, match=r"unknown attack 'ciaa'.*cia"):
        find_experiment("ciaa")


def test_a_plan_without_names_runs_all_that_fit(tmp_path: Path) -> None:
    other = record(tmp_path / "run", model="distmult", canaries=60, rounds=1)
    found = run_attacks(other, PLAN)
    assert list(dict.fromkeys(outcome.attack for outcome in found)) == fitting_attacks(other)
    assert not any(outcome.attack.startswith("si-") for outcome in found)
