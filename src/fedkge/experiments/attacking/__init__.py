"""How each attack is run on a recorded federation, and the registry of all names that `--attack` takes."""

from __future__ import annotations

from fedkge.experiments.attacking.attack_experiment import AttackExperiment, Job, Setting
from fedkge.experiments.attacking.registry import attack_experiments, find_experiment, fitting_attacks, known_attacks

__all__ = [
    "AttackExperiment",
    "Job",
    "Setting",
    "attack_experiments",
    "find_experiment",
    "fitting_attacks",
    "known_attacks",
]
