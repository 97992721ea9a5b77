"""`fedkge account` for a plan: its cost as tables, a picture or JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from fedkge.accounting.accountants import NEIGHBOURS, make_accountant
from fedkge.accounting.curves import epsilon_over_rounds, plot_curves
from fedkge.accounting.deltas import large_epsilon
from fedkge.accounting.plan_costs import PUBLISHED, cost_of_plan, picture_parts
from fedkge.cli.account import label, shown
from fedkge.cli.tables import grid, print_json, say, stderr, stdout
from fedkge.report.guess_words import guess_words
from fedkge.report.promise_words import NEIGHBOURS as NEIGHBOUR_WORDS

if TYPE_CHECKING:
    from fedkge.accounting.plan_costs import PlanCost
    from fedkge.accounting.plans import CostPlan

PLOT_POINTS = 20


def account_plan(
    plan: CostPlan, noise: float | None, budget: float | None, accountant: str, plot: Path | None, as_json: bool
) -> None:
    """Print what a plan costs, or the noise that a budget needs."""
    with stderr().status("accounting"):
        found = cost_of_plan(plan, noise, budget, accountant)
        if plot is not None:
            _plot(found, plot)
    if as_json:
        print_json(found.record() | {"neighbours": NEIGHBOUR_WORDS[NEIGHBOURS]})
    else:
        _show(found)
    if warning := large_epsilon(found.epsilon if math.isfinite(found.epsilon) else None):
        say(f"WARNING: {warning}")
    if plot is not None:
        say(f"Drawn: {plot}")


def _show(found: PlanCost) -> None:
    console, plan, name = stdout(), found.plan, label(found.accountant.name)
    if found.budget is not None:
        line = f"Noise multiplier {found.noise:.4f} keeps epsilon {found.budget:g} at delta {plan.delta:g} ({name})."
        console.print(line, style="bold", markup=False, soft_wrap=True)
        console.print()
    rows = [(label(each), shown(cost), _remark(found, each, cost)) for each, cost in found.by_accountant.items()]
    console.print(grid(_title(found), ("accountant", "epsilon", ""), rows, words=(0, 2)))
    if found.curve:
        body = [(str(number), shown(cost)) for number, cost in found.curve]
        console.print(grid(f"Over rounds ({name})", ("round", "epsilon"), body, words=()))
    if plan.mechanism == "ptr":
        say("At the paper's sizes the test almost never passes: read docs/proofs/ptr.md before you train with it.")
    if found.guess:
        console.print(guess_words(found.guess), markup=False, soft_wrap=True)


def _title(found: PlanCost) -> str:
    plan = found.plan
    steps = f"{plan.steps:,} step{'s' if plan.steps > 1 else ''}"
    steps = steps if plan.rounds == 1 else f"{plan.rounds:,} rounds of {steps}"
    falling = f", falling by {plan.decay:g} per round" if plan.decay < 1 and plan.rounds > 1 else ""
    return (
        f"{plan.mechanism}: {steps}, batches of {plan.batch:,} out of {plan.triples:,} triples, "
        f"noise {found.noise:.4g}{falling}, delta {plan.delta:g}"
    )


def _remark(found: PlanCost, accountant: str, cost: float) -> str:
    if accountant == PUBLISHED and math.isinf(cost):
        return "the paper's formulas allow no order at these sizes"
    if accountant == PUBLISHED:
        return "the paper's formulas: no upper bound, see docs/proofs/published.md"
    if found.plan.mechanism == PUBLISHED:
        return "as printed, the mechanism gives no guarantee; the sound form is --mechanism ptr"
    return "the bound to quote" if accountant == found.accountant.name else "also an upper bound"


def _plot(found: PlanCost, path: Path) -> None:
    parts, name = picture_parts(found.plan, found.noise)
    curves = {
        label(accountant): epsilon_over_rounds(parts, found.plan.delta, make_accountant(accountant), PLOT_POINTS)
        for accountant, cost in found.by_accountant.items()
        if math.isfinite(cost)
    }
    plot_curves(curves, path, _title(found), found.budget, name)
