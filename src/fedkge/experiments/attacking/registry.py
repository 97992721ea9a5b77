"""Every attack that can be run on a recorded federation, by the name that `--attack` takes.

A new passive attack is one file and one line in `fedkge.attacks`. An attack that forks or trains federations is one
file here and one entry of `EXPERIMENTS`.
"""

from __future__ import annotations

from fedkge.attacks import ATTACKS
from fedkge.base.registry import look_up
from fedkge.experiments.attacking.active import ForkedCIA, InlineExperiment
from fedkge.experiments.attacking.attack_experiment import AttackExperiment
from fedkge.experiments.attacking.passive import PassiveExperiment
from fedkge.experiments.attacking.shadowed import LiRAExperiment, ShadowExperiment
from fedkge.runs.run import Run

EXPERIMENTS: list[AttackExperiment] = [ForkedCIA(), InlineExperiment(), LiRAExperiment(), ShadowExperiment()]
"""Attacks that take more than a view."""


def attack_experiments() -> dict[str, AttackExperiment]:
    """The experiment of every name, passive attacks first."""
    experiments = [*(PassiveExperiment(attack) for attack in ATTACKS.values()), *EXPERIMENTS]
    return {name: experiment for experiment in experiments for name in experiment.names}


def find_experiment(name: str) -> AttackExperiment:
    """The experiment that runs the attack called `name`, or an error that lists the near names.

    >>> find_experiment("cia-matched").names
    ('cia', 'cia-matched', 'cia-published')
    """
    return look_up(attack_experiments(), name, "attack")


def known_attacks() -> list[str]:
    """All names that `--attack` takes."""
    return list(attack_experiments())


def fitting_attacks(run: Run) -> list[str]:
    """The attacks that work on this run's model; those that train more federations only on request."""
    model = run.embedding(run.clients[0]).scorer.name
    return [
        name
        for name, experiment in attack_experiments().items()
        if model in (experiment.models or (model,)) and experiment.is_usual(run)
    ]
