"""What claims about utility are decided by: Table 2."""

from __future__ import annotations

from collections.abc import Callable

from paper.names import data_name, model_name, short
from paper.rules import Facts, Measured, Measurement, Place
from paper.table_utility import UNDEFENDED, UtilityRow
from paper.worth import PRIVATE_POPULARITY


def _mrr(row: UtilityRow | None, rule: Measured) -> float | None:
    """As the paper ranks, or on both sides."""
    if row and rule.column == "published":
        return row.published.ranked.mrr if row.published and row.published.ranked else None
    return row.sound.sides.both.value if row and row.sound and row.sound.sides else None


def _too_small(row: UtilityRow | None) -> bool:
    """Whether the budget was looked at and covers no round."""
    return bool(row and row.published and row.published.ranked is None)


def against_defence(facts: Facts, rule: Measured) -> Measurement:
    """MRR under one defence against that under another (or none) at the same budget, where that covers a round."""
    places = []
    for name, other_name in ((one, two) for one in rule.of for two in rule.against):
        for row in (row for row in facts.utility.rows if row.defence == name):
            budget = 0.0 if other_name == UNDEFENDED else row.epsilon
            beside = facts.utility.row(row.data, row.model, other_name, budget)
            own, other = _mrr(row, rule), _mrr(beside, rule)
            where = f"{model_name(row.model)} on {data_name(row.data)}, ε {row.epsilon:g}"
            if own is not None and other is not None:
                said = f"{where}: {short(own)} against {short(other)}"
                places.append(Place(own, other, said, data_name(row.data)))
            elif not (_too_small(row) or _too_small(beside)):
                places.append(Place(None, 0.0, where, data_name(row.data)))
    counting = [
        f"{short(one.published.mrr)} on {data_name(one.data)}"
        for one in facts.utility.controls
        if one.published and one.name == PRIVATE_POPULARITY
    ]
    return Measurement(tuple(places), words={"counting": ", ".join(counting)} if counting else {})


def against_paper(facts: Facts, _: Measured) -> Measurement:
    """The undefended MRR, ranked as the paper does, against the printed one."""
    places = []
    for one in facts.utility.reached:
        row = facts.utility.row(one.data, one.model, UNDEFENDED, 0.0)
        if one.defended or not row:
            continue
        open_ = one.ours is None or one.ours < one.paper
        waits = open_ and not row.sound and "sound" not in row.absent  # the other column may reach it yet
        said = f"{model_name(one.model)} on {data_name(one.data)}: {short(one.ours)} (paper {short(one.paper)})"
        places.append(Place(None if waits else one.ours, one.paper, said, data_name(one.data)))
    return Measurement(tuple(places))


UTILITY: dict[str, Callable[[Facts, Measured], Measurement]] = {
    "MRR against another defence": against_defence,
    "undefended MRR against the paper": against_paper,
}
