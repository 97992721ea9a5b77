"""What claims about attacks are decided by: Table 1, and the figure over the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paper.figure_rounds import Series
from paper.names import BILINEAR, DISTANCE, FAMILIES, data_name, listed, model_name, short
from paper.points import FLOOR, LOW_FPR, OURS, Point
from paper.rules import MODELS, NEVER, Facts, Measured, Measurement, Place
from paper.table_attacks import AttackRow

CHANCE = 0.5


def _place(row: AttackRow) -> str:
    return f"{model_name(row.model)} on {data_name(row.data)}"


def _rows(facts: Facts, family: str, models: Sequence[str]) -> list[AttackRow]:
    return [row for row in facts.attacks.rows if row.family == family and row.model in models]


def _auc(point: Point) -> str:
    return f"AUC {short(point.auc.value)} [{short(point.auc.low)}, {short(point.auc.high)}]"


def _of_points(
    facts: Facts, rule: Measured, number: Callable[[Point], tuple[float, float, str]], models: Sequence[str] = ()
) -> Measurement:
    """One place for every federation that the attacks fit."""
    places = []
    for family in rule.of:
        for row in _rows(facts, family, models or MODELS[rule.models]):
            point: Point | None = getattr(row, rule.form)
            if point:
                own, other, words = number(point)
                said = f"{FAMILIES[family]}, {_place(row)}: {words}"
                places.append(Place(own, other, said, data_name(row.data)))
            elif not row.measured and (family != "si" or row.model in DISTANCE):
                places.append(Place(None, 0.0, _place(row), data_name(row.data)))
    return Measurement(tuple(places))


def auc(facts: Facts, rule: Measured) -> Measurement:
    """The lower end of the AUC's interval, against guessing."""
    return _of_points(facts, rule, lambda point: (point.auc.low, CHANCE, _auc(point)))


def f1(facts: Facts, rule: Measured) -> Measurement:
    """The F1 of one form."""
    return _of_points(facts, rule, lambda point: (point.best_f1, 0.0, short(point.best_f1)))


def f1_above_chance(facts: Facts, rule: Measured) -> Measurement:
    """The same against calling every target a member, where the AUC is above guessing."""

    def number(point: Point) -> tuple[float, float, str]:
        own = point.best_f1 if point.auc.low > CHANCE else NEVER
        return own, FLOOR, f"F1 {short(point.best_f1)}, {_auc(point)}"

    return _of_points(facts, rule, number)


def strongest_by_attack(facts: Facts, rule: Measured) -> Measurement:
    """Of each attack the highest AUC anywhere, after the last round."""
    places = []
    for family in rule.of:
        found = [(row.last, row) for row in _rows(facts, family, MODELS[rule.models]) if row.last]
        if not found:
            places.append(Place(None, CHANCE, FAMILIES[family]))
            continue
        point, row = max(found, key=lambda pair: pair[0].auc.value)
        places.append(Place(point.auc.low, CHANCE, f"{FAMILIES[family]} {_auc(point)} ({_place(row)})"))
    return Measurement(tuple(places))


def strongest_by_federation(facts: Facts, _: Measured) -> Measurement:
    """Of each federation the attack with the highest TPR at 1 % FPR; its AUC where there are too few targets."""

    def low_rate(point: Point) -> float | None:
        return point.tpr.low if point.tpr else None

    places = []
    for data, model in dict.fromkeys((row.data, row.model) for row in facts.attacks.rows):
        points = [row.last for row in facts.attacks.rows if (row.data, row.model) == (data, model) and row.last]
        where = f"{model_name(model)} on {data_name(data)}"
        if not points:
            places.append(Place(None, 0.0, where, data_name(data)))
            continue
        point = max(points, key=lambda one: (low_rate(one) or 0.0, one.auc.value))
        low = low_rate(point)
        said = _auc(point) if low is None else f"TPR {short(point.tpr.value if point.tpr else None)} at 1 % FPR"
        own, other = (point.auc.low, CHANCE) if low is None else (low, LOW_FPR)
        places.append(Place(own, other, f"{where} {said} ({point.attack})", data_name(data)))
    return Measurement(tuple(places))


def f1_against_paper(facts: Facts, _: Measured) -> Measurement:
    """The highest F1 of any form and round, against the printed one."""
    places = []
    for row in facts.attacks.rows:
        if row.paper is not None:
            ours = short(row.best.best_f1) if row.best else ""
            said = f"{FAMILIES[row.family]}, {_place(row)}: {ours} (paper {short(row.paper)})"
            places.append(Place(row.best.best_f1 if row.best else None, row.paper, said, data_name(row.data)))
    return Measurement(tuple(places))


def f1_against_attack(facts: Facts, rule: Measured) -> Measurement:
    """The highest F1 of one attack against that of another on the same federation."""
    (first,), (second,), places = rule.of, rule.against, []
    for row in _rows(facts, first, MODELS[rule.models]):
        beside = facts.attacks.row(row.data, row.model, second)
        own, other, said = None, 0.0, _place(row)
        if row.best and beside and beside.best:
            own, other = row.best.best_f1, beside.best.best_f1
            said += f": {FAMILIES[first]} {short(own)}, {FAMILIES[second]} {short(other)}"
        places.append(Place(own, other, said, data_name(row.data)))
    return Measurement(tuple(places))


def si_by_model(facts: Facts, rule: Measured) -> Measurement:
    """Whether SI works on distance models and on no others; 1 where it does as claimed."""

    def on(models: Sequence[str], works: bool) -> tuple[Place, ...]:
        def number(point: Point) -> tuple[float, float, str]:
            return float((point.auc.low > CHANCE) == works), 0.0, _auc(point)

        return _of_points(facts, rule, number, models).places

    works, fails = on(DISTANCE, True), on(BILINEAR, False)
    waiting = {place.group for place in works if place.own is None}
    there = [place for place in works if place.own is not None and place.group not in waiting]
    if fails or not there or not all(place.own for place in there):
        return Measurement(works + fails)
    server = [(row, row.last) for row in _rows(facts, OURS, BILINEAR) if row.last]
    said = listed([f"{_place(row)} {_auc(point)} ({point.attack})" for row, point in server[:2]])
    beside = f" A server with the same auxiliary triples succeeds there by other means: {said}." if server else ""
    return Measurement(cause="not defined", words={"first": works[0].words, "beside": beside})


def _series(facts: Facts, families: Sequence[str], least: int) -> list[Series]:
    return [
        one for one in facts.rounds.series if one.family in families and not one.printed and len(one.rounds) >= least
    ]


def _course(one: Series) -> str:
    place = f"{FAMILIES[one.family]}, {model_name(one.model)} on {data_name(one.data)}"
    said = f"{place}: {short(one.best_f1[0])} at round {one.rounds[0]}"
    return said + (f", {short(one.best_f1[-1])} at round {one.rounds[-1]}" if len(one.rounds) > 1 else "")


def _of_curves(number: Callable[[tuple[float, ...]], tuple[float, float]]) -> Callable[[Facts, Measured], Measurement]:
    """A quantity of F1 round by round: one place for every curve that is long enough."""

    def quantity(facts: Facts, rule: Measured) -> Measurement:
        played, long = _series(facts, rule.of, 1), _series(facts, rule.of, rule.rounds)
        if played and not long and "too few rounds" in rule.untested:
            return Measurement(cause="too few rounds", words={"first": _course(played[0])})
        if played and "too late" in rule.untested and not any(_from_the_start(facts, one) for one in played):
            courses, first = "; ".join(map(_course, played[:2])), min(one.rounds[0] for one in played)
            return Measurement(cause="too late", words={"courses": courses, "round": str(first)})
        curves = [Place(*number(one.best_f1), _course(one), model_name(one.model)) for one in long]
        missing = [Place(None, 0.0, model_name(model), model_name(model)) for _, model in facts.rounds.missing]
        return Measurement((*curves, *missing))

    return quantity


def _from_the_start(facts: Facts, one: Series) -> bool:
    """Whether it was played as early as any attack on the same federation."""
    others = [other.rounds[0] for other in facts.rounds.series if (other.data, other.model) == (one.data, one.model)]
    return one.rounds[0] == min(others)


ATTACKS: dict[str, Callable[[Facts, Measured], Measurement]] = {
    "strongest form of each attack": strongest_by_attack,
    "strongest attack on each federation": strongest_by_federation,
    "AUC of an attack": auc,
    "F1 of an attack": f1,
    "F1 of an attack above chance": f1_above_chance,
    "F1 against the paper": f1_against_paper,
    "F1 of one attack against another": f1_against_attack,
    "SI by kind of model": si_by_model,
    "span of a curve": _of_curves(lambda f1: (max(f1) - min(f1), 0.0)),
    "peak after the first round": _of_curves(lambda f1: (max(f1[1:]), f1[0])),
    "rise in the last quarter": _of_curves(lambda f1: (f1[-1] - f1[(3 * len(f1)) // 4 - 1], 0.0)),
    "peak at the first round": _of_curves(lambda f1: (f1[0] if max(f1) == f1[0] else NEVER, f1[-1])),
}
