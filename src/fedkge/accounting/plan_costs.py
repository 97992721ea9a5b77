"""What a plan costs: the noise, epsilon by every accountant, epsilon over rounds, and what a guess is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedkge.accounting.accountants import ACCOUNTANTS, Accountant, make_accountant
from fedkge.accounting.calibration import calibrate
from fedkge.accounting.curves import Curve, epsilon_over_rounds
from fedkge.accounting.plans import CostPlan
from fedkge.accounting.posterior import GuessWorth, guess_worth
from fedkge.base.numbers import finite
from fedkge.mechanisms.events import Charge

ROWS, PARTS = 10, 20
"""Rounds in the curve; equal parts of a single round in a picture."""
PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan at one noise multiplier."""

    plan: CostPlan
    noise: float
    budget: float | None
    """The epsilon that the noise was found for; None if the noise was given."""
    accountant: Accountant
    """The one whose epsilon counts."""
    by_accountant: Mapping[str, float]
    """Epsilon by every accountant that knows the mechanism, the chosen one first."""
    curve: Curve
    """Epsilon over rounds, by the chosen accountant; empty for a single round."""
    guess: GuessWorth | None
    """How well an adversary can guess one triple; None if the accountant proves nothing."""

    @property
    def epsilon(self) -> float:
        """By the chosen accountant; infinite if nothing is guaranteed."""
        return self.by_accountant[self.accountant.name]

    def record(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        plan, chosen = self.plan, self.accountant
        return {
            "mechanism": plan.mechanism,
            "sigma": self.noise,
            "epsilon": finite(self.epsilon),
            "delta": plan.delta,
            "accountant": chosen.name,
            "sound": chosen.sound,
            "private": plan.mechanism != PUBLISHED and chosen.sound,
            "budget": self.budget,
            "batch": plan.batch,
            "triples": plan.triples,
            "sampling_rate": plan.rate,
            "steps": plan.steps,
            "rounds": plan.rounds,
            "epsilon_by_accountant": {name: finite(cost) for name, cost in self.by_accountant.items()},
            "epsilon_over_rounds": [{"round": number, "epsilon": finite(cost)} for number, cost in self.curve],
            "charges": [charge.record() for charge in plan.charges(self.noise)],
            "guess": None if self.guess is None else self.guess.record(),
        }


def cost_of_plan(plan: CostPlan, noise: float | None, budget: float | None, accountant: str = "pld") -> PlanCost:
    """The cost of a plan with this noise multiplier; without one, with the least noise that keeps the budget.

    The mechanism as published is counted by the paper's own formulas, whatever `accountant` says.

    >>> found = cost_of_plan(CostPlan("dense", batch=4096, triples=90_000, steps=100), noise=1.0, budget=None)
    >>> round(found.epsilon, 2), list(found.by_accountant), found.curve
    (3.19, ['pld', 'rdp', 'published'], [])
    """
    chosen = make_accountant(PUBLISHED if plan.mechanism == PUBLISHED else accountant)
    if noise is None:
        noise = calibrate(plan.charges, budget or 0.0, plan.delta, chosen)
    costs = _by_accountant(plan, noise, chosen)
    rounds = [[charge] for charge in plan.by_round(noise)]
    curve = epsilon_over_rounds(rounds, plan.delta, chosen, ROWS) if plan.rounds > 1 else []
    guess = guess_worth(plan.charges(noise), costs[chosen.name], plan.delta) if chosen.sound else None
    return PlanCost(plan, noise, budget, chosen, costs, curve, guess)


def _by_accountant(plan: CostPlan, noise: float, chosen: Accountant) -> dict[str, float]:
    charges = plan.charges(noise)
    costs = {chosen.name: chosen.epsilon(charges, plan.delta)}
    for name in ACCOUNTANTS:
        if name not in costs and not (name == PUBLISHED and plan.mechanism == "adafest"):
            costs[name] = make_accountant(name).epsilon(charges, plan.delta)
    return costs


def picture_parts(plan: CostPlan, noise: float) -> tuple[list[list[Charge]], str]:
    """What a picture shows point by point, and the name of a point: rounds, or equal parts of a single round.

    >>> parts, name = picture_parts(CostPlan("dense", batch=64, triples=900, steps=100), noise=1.0)
    >>> len(parts), name
    (20, 'times 5 steps')
    """
    if plan.rounds > 1 or plan.steps == 1:
        return [[charge] for charge in plan.by_round(noise)], "round"
    size = math.ceil(plan.steps / PARTS)
    sizes = [min(size, plan.steps - done) for done in range(0, plan.steps, size)]
    return [[Charge(plan.event(noise), steps)] for steps in sizes], f"times {size:,} steps"
