"""What claims about attacks after a defence are decided by: the figures over budgets and of utility."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from fedkge.base.numbers import epsilon as written
from paper.figure_defence import DefenceCell
from paper.figure_tradeoff import Trade
from paper.names import DEFENCES, FAMILIES, defence_name, model_name, short
from paper.points import CLOSE, FLOOR
from paper.rules import MODELS, NEVER, Facts, Measured, Measurement, Place

SHORT = {"dp-flames-adaptive": "Adp"}


def _cells(facts: Facts, rule: Measured) -> list[DefenceCell]:
    """Those that trained at least one round."""
    return [
        cell
        for cell in facts.defence.cells
        if cell.column == rule.column
        and cell.defence in rule.of
        and cell.model in MODELS[rule.models]
        and (not rule.budgets or cell.epsilon in rule.budgets)
        and cell.round
    ]


def _waiting(facts: Facts, rule: Measured, *defences: str) -> list[Place]:
    """One empty place per cell that has not been run."""
    return [
        Place(None, 0.0, model_name(key.model), model_name(key.model))
        for key in facts.defence.missing
        if key.column == rule.column
        and key.defence in defences
        and key.model in MODELS[rule.models]
        and (not rule.budgets or key.epsilon in rule.budgets)
    ]


def _means(facts: Facts, one: DefenceCell | Trade, defence: str = "") -> tuple[float, float] | None:
    return facts.defence.means(one.data, one.model, one.column, defence or one.defence, one.epsilon)


def _place(cell: DefenceCell) -> str:
    return f"{model_name(cell.model)}, {defence_name(cell.defence, cell.epsilon)}"


def _guessing(*f1: float) -> bool:
    """Whether no attack is clearly above calling every target a member."""
    return max(f1) <= FLOOR + CLOSE


def fall_of_mean(facts: Facts, rule: Measured) -> Measurement:
    """The fall of the mean F1 over all cells, against the printed one."""
    before, after = facts.defence.paper_before, facts.defence.paper_after
    if before is None or after is None:
        return Measurement(cause="not printed")
    pairs = [means for cell in _cells(facts, rule) if (means := _means(facts, cell))]
    if not pairs:
        return Measurement()
    ours = fmean(one for one, _ in pairs), fmean(one for _, one in pairs)
    waiting = _waiting(facts, rule, *rule.of)
    words = {
        "when": f"So far ({len(waiting)} cells not run)" if waiting else "Here",
        "so_far": "so far " if waiting else "",
        "before": short(ours[0]),
        "after": short(ours[1]),
        "fall": short(ours[0] - ours[1]),
        "paper_fall": short(before - after),
        "paper_after": short(after),
        "floor": short(FLOOR),
    }
    return Measurement((Place(ours[0] - ours[1], before - after, ""), *waiting), words=words)


def fall(facts: Facts, rule: Measured) -> Measurement:
    """The fall of the mean F1 in each cell."""
    places = _waiting(facts, rule, *rule.of)
    for cell in _cells(facts, rule):
        if means := _means(facts, cell):
            ranks = f", MRR {short(cell.mrr)}" if cell.mrr is not None else ""
            said = f"{_place(cell)}: {short(means[0])} to {short(means[1])}{ranks}"
            places.append(Place(means[0] - means[1], 0.0, said, model_name(cell.model)))
    return Measurement(tuple(places))


def mean_after(facts: Facts, rule: Measured) -> Measurement:
    """The mean F1 that is left, against calling every target a member."""
    places = _waiting(facts, rule, *rule.of)
    for cell in _cells(facts, rule):
        if means := _means(facts, cell):
            said = f"{_place(cell)}: {short(means[1])}"
            places.append(Place(means[1], FLOOR, said, model_name(cell.model)))
    return Measurement(tuple(places))


def against_lowest(facts: Facts, rule: Measured) -> Measurement:
    """The mean F1 that a defence leaves, against the lowest that others leave at the same budget."""
    places = _waiting(facts, rule, *rule.of)
    for cell in _cells(facts, rule):
        own, model = _means(facts, cell), model_name(cell.model)
        others = [(means[1], name) for name in rule.against if (means := _means(facts, cell, name))]
        if not own or not others:
            places.append(Place(None, 0.0, _place(cell), model))
            continue
        least, name = min(others)
        said = f"{model}, ε {cell.epsilon:g}: {short(own[1])}, {DEFENCES[name]} {short(least)}"
        places.append(Place(own[1], least, said, model, _guessing(own[1], least)))
    return Measurement(tuple(places))


def against_defence(facts: Facts, rule: Measured) -> Measurement:
    """The F1 of each attack under one defence, against that under another at the same budget."""
    (first,), (second,) = rule.of, rule.against
    places = _waiting(facts, rule, first, second)
    for cell in _cells(facts, rule):
        for family in rule.attacks:
            one, two = (
                facts.defence.at(cell.data, cell.model, cell.column, name, cell.epsilon, family)
                for name in (first, second)
            )
            if one and two and one.f1 is not None and two.f1 is not None:
                where = f"{FAMILIES[family]}, {model_name(cell.model)}, ε {cell.epsilon:g}"
                pair = sorted(((first, one.f1), (second, two.f1)), key=lambda each: list(DEFENCES).index(each[0]))
                said = ", ".join(f"{SHORT.get(name, DEFENCES[name])} {short(value)}" for name, value in pair)
                level = _guessing(one.f1, two.f1)
                places.append(Place(one.f1, two.f1, f"{where}: {said}", model_name(cell.model), level))
    return Measurement(tuple(places))


def used_up(facts: Facts, rule: Measured) -> Measurement:
    """Whether the budget ended the training: 1 where it did."""
    places = _waiting(facts, rule, *rule.of)
    for cell in _cells(facts, rule):
        spent = (
            f"ε {written(cell.spent_all_orders)} by the printed formulas ({written(cell.spent)} within their orders)"
        )
        said = f"{_place(cell)}: round {cell.round} of {cell.rounds}, {spent}"
        places.append(Place(float(cell.exhausted), 0.0, said, model_name(cell.model)))
    return Measurement(tuple(places))


def passed_tests(facts: Facts, rule: Measured) -> Measurement:
    """How many of the steps passed their test, against all of them."""
    runs = {
        cell.digest: cell.tests
        for cell in facts.cells
        if cell.key.column == rule.column and cell.key.defence in rule.of and cell.tests.get("made")
    }
    if not runs:
        return Measurement()
    made, passed = (sum(tests[name] for tests in runs.values()) for name in ("made", "passed"))
    federations = "one federation" if len(runs) == 1 else f"{len(runs)} federations"
    words = {"passed": f"{passed:,}", "made": f"{made:,}", "federations": federations}
    return Measurement((Place(passed, made, ""),), words=words)


def _trades(facts: Facts, rule: Measured, number: Callable[[Trade, Trade], tuple[float, float]]) -> list[Place]:
    """One defence against another at every budget."""
    places = []
    for name, other_name in ((one, two) for one in rule.of for two in rule.against):
        places += _waiting(facts, rule, name, other_name)
        for model in MODELS[rule.models]:
            others = facts.tradeoff.of(model, rule.column, other_name)
            for budget, own in facts.tradeoff.of(model, rule.column, name).items():
                if other := others.get(budget):
                    said = f"MRR {short(own.mrr)}, F1 less by {short(own.decrease)}, against {short(other.mrr)} and"
                    where = f"{model_name(model)}, {defence_name(name, budget)}"
                    words = f"{where}: {said} {short(other.decrease)}"
                    places.append(Place(*number(own, other), words, model_name(model)))
    return places


def mrr_at_defence(facts: Facts, rule: Measured) -> Measurement:
    """MRR where the attacks lose about as much F1 (`slack`), against that of the other defence."""

    def number(own: Trade, other: Trade) -> tuple[float, float]:
        return own.mrr if own.decrease >= other.decrease - rule.slack else NEVER, other.mrr

    return Measurement(tuple(_trades(facts, rule, number)))


def decrease(facts: Facts, rule: Measured) -> Measurement:
    """What a defence takes from the mean F1, against what another takes."""
    places = _trades(facts, rule, lambda own, other: (own.decrease, other.decrease))
    names = (*rule.of, *rule.against)
    points = [facts.tradeoff.of(model, rule.column, name) for model in MODELS[rule.models] for name in names]
    after = [means[1] for some in points for one in some.values() if (means := _means(facts, one))]
    if after and _guessing(*after):
        places = [place if place.own is None else replace(place, guessing=True) for place in places]
    return Measurement(tuple(places))


DEFENCE: dict[str, Callable[[Facts, Measured], Measurement]] = {
    "fall of the mean F1": fall_of_mean,
    "tests that passed": passed_tests,
    "budget used up": used_up,
    "fall of F1 under a defence": fall,
    "mean F1 under a defence": mean_after,
    "mean F1 under one defence against the lowest of others": against_lowest,
    "F1 under one defence against another": against_defence,
    "MRR at no less defence": mrr_at_defence,
    "decrease of F1 against another defence": decrease,
}
