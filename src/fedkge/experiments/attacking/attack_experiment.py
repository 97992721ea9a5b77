"""What an attack experiment is: it names attacks, says what they need, and lists what is to be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from fedkge.attacks.attack import Scores
from fedkge.base.short_repr import short_repr
from fedkge.configuration import Configuration
from fedkge.experiments.plan import AttackPlan, attacked_rounds
from fedkge.experiments.targets import Design, Targets
from fedkge.experiments.targets.real import part_within
from fedkge.graph import Triples
from fedkge.runs.run import Run
from fedkge.runs.view import Adversary, Attacker, View

Report: TypeAlias = Callable[[str], None]
"""Hears how far a job has come."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A recorded run, the plan, its targets, and the views of the adversaries that the plan needs."""

    run: Run
    plan: AttackPlan
    targets: Mapping[Design, Targets]
    auxiliary: Triples
    views: Mapping[Adversary, View]

    def rounds(self, adversary: Adversary) -> list[int]:
        """The rounds to attack among those that the adversary saw."""
        return attacked_rounds(self.views[adversary].rounds, self.plan.every)

    def targets_of(self, adversary: Adversary) -> dict[Design, Targets]:
        """The targets that an adversary can score. Of real ones (R), a client knows only those with its own names."""
        able = dict(self.targets)
        if adversary == "client" and "R" in able:
            names = (self.run.tensors[f"{which}/{self.plan.adversary}"] for which in ("own", "relation_ids"))
            able["R"] = part_within(able["R"], *names)
            if min(np.bincount(able["R"].members, minlength=2)) < 2:  # of each kind: what metrics need
                del able["R"]
        return able


@short_repr("adversary")
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Scores to be made: of all `targets`, by the attacks `names` of one adversary, after one round.

    `score` gives for each name one score per triple, the targets of all designs one after the other, each followed by
    its calibration triples. `exposes`: whether the triples that it finds are listed by name for the data owner.
    """

    names: tuple[str, ...]
    adversary: Attacker
    round: int
    targets: Mapping[Design, Targets]
    score: Callable[[Report], Mapping[str, Scores]]
    exposes: bool = True


class AttackExperiment(Protocol):
    """A way to run one attack, or several that share their work, on a recorded run."""

    @property
    def names(self) -> tuple[str, ...]:
        """The option values of its attacks."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that it works on; empty means all."""
        ...

    @property
    def live(self) -> bool:
        """Whether it can attack a round as soon as it is recorded, before the federation ends."""
        ...

    def is_usual(self, run: Run) -> bool:
        """Whether it runs without being asked for by name, given that it works on the run's model."""
        ...

    def check_training(self, configuration: Configuration) -> None:
        """Refuse, before training, a run that it could not attack."""
        ...

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:
        """Whose views it needs; what can be refused without looking at the run is refused here."""
        ...

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterable[Job]:
        """What is to be scored for these of its names."""
        ...
