"""Attacks during training: each recorded round that is due is attacked at once, and the result is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedkge.base.errors import FedkgeError
from fedkge.experiments.attacking import find_experiment, fitting_attacks
from fedkge.experiments.experiment import AttackPlan, Memory, Outcome, run_attacks
from fedkge.federation.observer import Observer
from fedkge.runs.run import Run
from fedkge.runs.transcript import recorded_rounds


class LiveAttacks(Observer):
    """Attacks every round of the plan as soon as it is recorded.

    Attacks that are not `live` (LiRA, shadow, in-line) wait for the end. `memory` holds the scores so far. Afterwards
    `run_attacks` with the same plan and this memory computes only what is missing; the result is the same as without.
    """

    def __init__(self, plan_of: Callable[[Run], AttackPlan], tell: Callable[[str], None]) -> None:
        self._plan_of, self.tell = plan_of, tell
        self.memory: Memory = {}

    def recorded(self, run: Run, round_number: int) -> None:
        """Attack the round if it is due. If it cannot be attacked yet, say so and leave it for the end."""
        plan = self._plan_of(run)
        last = max(recorded_rounds(run.configuration.experiment.record, run.configuration.training.rounds))
        if round_number % plan.every and round_number != last:
            return
        names = plan.attacks or fitting_attacks(run)
        now = tuple(name for name in names if find_experiment(name).live)
        if not now:
            return
        try:
            outcomes = run_attacks(run, replace(plan, attacks=now), memory=self.memory)
        except FedkgeError as error:
            self.tell(f"round {round_number} could not be attacked yet: {error}")
            return
        for line in summary([outcome for outcome in outcomes if outcome.round == round_number]):
            self.tell(f"round {round_number} attacked, {line}")


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """One line per design: the area under the curve of every attack.

    >>> summary([Outcome("cip", "client", "C", 5, {"auc": {"value": 0.8125}})])
    ['design C, AUC: cip 0.812']
    """
    lines = []
    for design in dict.fromkeys(outcome.design for outcome in outcomes):
        areas = (f"{one.attack} {one.metrics['auc']['value']:.3f}" for one in outcomes if one.design == design)
        lines.append(f"design {design}, AUC: {', '.join(areas)}")
    return lines
