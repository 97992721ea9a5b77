"""Passive attacks: each scores a view, for every adversary that it is for, after every attacked round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedkge.attacks.attack import Attack, Scores, check
from fedkge.configuration import Configuration
from fedkge.experiments.attacking.attack_experiment import Job, Report, Setting
from fedkge.experiments.plan import AttackPlan
from fedkge.graph import Triples
from fedkge.runs.run import Run
from fedkge.runs.view import Adversary, View


@dataclass(frozen=True, slots=True)
class PassiveExperiment:
    """Runs one registered attack of `fedkge.attacks`."""

    attack: Attack
    live: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The attack's name."""
        return (self.attack.name,)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the attack works on."""
        return self.attack.needs.models

    def is_usual(self, run: Run) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def check_training(self, configuration: Configuration) -> None:
        """Nothing beside the model, which `models` names."""

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:  # noqa: ARG002
        """The adversaries that the attack is for."""
        return self.attack.needs.adversary

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterator[Job]:
        """One for each adversary and attacked round."""
        for adversary in self.attack.needs.adversary:
            targets = setting.targets_of(adversary)
            if not targets:
                continue
            triples = np.concatenate([target.everything for target in targets.values()])
            for number in setting.rounds(adversary):
                view = setting.views[adversary].until(number)
                check(self.attack, view)
                yield Job(tuple(names), adversary, number, targets, partial(_score, self.attack, view, triples))


def _score(attack: Attack, view: View, triples: Triples, _: Report) -> dict[str, Scores]:
    return {attack.name: attack.score(view, triples)}
