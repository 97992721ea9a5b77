"""The figures of the reproduction: numbers of its document in, panels out; the same document gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from fedkge.report.svg import DASHES, INK, LIMIT, MUTED, SERIES
from paper.cells import COLUMNS, Column
from paper.document import Reproduction
from paper.figure_defence import UNDEFENDED, DefenceCell, Struck
from paper.figure_rounds import Roc, Series
from paper.figure_tradeoff import Trade
from paper.names import COLUMNS as COLUMN_NAMES
from paper.names import DEFENCES, FAMILIES, data_name, defence_name, model_name, short
from paper.panels import (
    DASHED,
    DOTTED,
    FLOOR_ENTRY,
    Entry,
    Figures,
    Group,
    Panel,
    Style,
    floor_line,
    legend,
    panel,
)
from paper.points import FLOOR
from paper.worth import CONTROLS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THREE = ("si", "cip", "cia")
STYLES: dict[str, Style] = {
    "si": {"color": SERIES[0], "marker": "o", "linestyle": DASHES[0]},
    "cip": {"color": SERIES[1], "marker": "s", "linestyle": DASHES[1]},
    "cia": {"color": SERIES[2], "marker": "^", "linestyle": DASHES[3]},
}
DEFENDED = {
    "dpsgd": (SERIES[0], "o"),
    "dp-flames": (SERIES[1], "s"),
    "dp-flames-adaptive": (SERIES[2], "^"),
    "recommended": (SERIES[3], "D"),
}


def draw_reproduction(document: Reproduction) -> dict[str, Figures]:
    """Every figure by its part's name; the same document gives the same bytes."""
    return {
        "figure-rounds": draw_rounds(document),
        "figure-defence": draw_defence(document),
        "figure-tradeoff": draw_tradeoff(document),
    }


def draw_rounds(document: Reproduction) -> Figures:
    """F1 by round and ROC of every model."""
    figure, groups = document.rounds, []
    for data, model in dict.fromkeys((one.data, one.model) for one in figure.series):
        lines = [one for one in figure.series if (one.data, one.model) == (data, model)]
        curves = [one for one in figure.curves if (one.data, one.model) == (data, model)]
        panels = []
        for column in COLUMNS:
            panels.append(_by_round(f"rounds-{model}-{column}", column, lines))
            panels.append(_roc(f"roc-{model}-{column}", column, [one for one in curves if one.column == column]))
        groups.append(Group(f"{model_name(model)} on {data_name(data)}", tuple(panels)))
    entries: list[Entry] = [(FAMILIES[name], style) for name, style in STYLES.items()]
    entries.append(("the form as the paper prints it", {"color": MUTED, "linestyle": DOTTED, "marker": "."}))
    entries += [FLOOR_ENTRY, ("guessing (ROC)", {"color": MUTED, "linestyle": ":"})]
    return Figures(legend("rounds-legend", entries), tuple(groups))


def _by_round(name: str, column: Column, lines: Sequence[Series]) -> Panel:
    def values(one: Series) -> list[float]:
        chosen = one.best_f1 if column == "published" else one.calibrated_f1
        return [math.nan if value is None else value for value in chosen]

    def paint(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (heavy)

        floor_line(axes)
        for one in lines:
            style = STYLES[one.family] | ({"linestyle": DOTTED, "marker": "."} if one.printed else {})
            axes.plot(one.rounds, values(one), markersize=4, linewidth=1.4, **style)
        shown = [value for one in lines for value in values(one) if not math.isnan(value)]
        axes.set_ylim(min([0.64, *(value - 0.03 for value in shown)]), 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))

    said = "; ".join(
        f"{FAMILIES[one.family]} ({one.attack}) "
        + ", ".join(f"round {at}: {short(value)}" for at, value in zip(one.rounds, values(one), strict=True))
        for one in lines
    )
    kind = "threshold chosen on the targets" if column == "published" else "calibrated threshold"
    title = f"F1 by round, {COLUMN_NAMES[column]}: {kind}"
    return panel(name, title, f"{title}. {said}. Floor {short(FLOOR)}.", paint, ("round", "F1"))


def _roc(name: str, column: Column, curves: Sequence[Roc]) -> Panel:
    def paint(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=MUTED, linestyle=":", linewidth=1)
        for one in curves:
            axes.plot(one.curve.fpr, one.curve.tpr, linewidth=1.5, **STYLES[one.family] | {"marker": ""})
        axes.set(xlim=(-0.01, 1), ylim=(0, 1.02))

    which = "best round" if column == "published" else "last round"
    said = "; ".join(f"{FAMILIES[one.family]} ({one.attack}, round {one.round})" for one in curves)
    title = f"ROC, {COLUMN_NAMES[column]}: {which}"
    return panel(name, title, f"{title}. {said or 'No curves'}.", paint, ("false-positive rate", "true-positive rate"))


def draw_defence(document: Reproduction) -> Figures:
    """F1 against epsilon, one panel per attack, model and column."""
    groups = []
    points = [point for point in document.defence.points if point.family in THREE]
    for column in COLUMNS:
        for data, model in dict.fromkeys((point.data, point.model) for point in points):
            own = [p for p in points if (p.column, p.data, p.model) == (column, data, model)]
            if not any(point.epsilon for point in own):
                continue
            values = [point.f1 for point in own if point.f1 is not None]
            limits = (min([0.64, *(value - 0.03 for value in values)]), max([0.8, *(value + 0.03 for value in values)]))
            panels = [
                _after_defence(f"defence-{model}-{column}-{family}", family, found, _unused(document), limits)
                for family in THREE
                if (found := [point for point in own if point.family == family])
            ]
            groups.append(Group(f"{model_name(model)} on {data_name(data)}, {COLUMN_NAMES[column]}", tuple(panels)))
    entries: list[Entry] = [
        (DEFENCES[name], {"color": color, "marker": mark}) for name, (color, mark) in DEFENDED.items()
    ]
    entries += [("no defence", {"color": INK, "linestyle": ":"}), FLOOR_ENTRY]
    entries.append(("hollow: the budget was never used up", {"color": MUTED, "marker": "o", "markerfacecolor": "none"}))
    return Figures(legend("defence-legend", entries), tuple(groups))


Place: TypeAlias = tuple[str, str, str, str, float]


def _place(one: Struck | DefenceCell) -> Place:
    return (one.data, one.model, one.column, one.defence, one.epsilon)


def _unused(document: Reproduction) -> set[Place]:
    return {_place(cell) for cell in document.defence.cells if not cell.exhausted}


def _after_defence(
    name: str, family: str, points: Sequence[Struck], unused: set[Place], limits: tuple[float, float]
) -> Panel:
    lines = {
        defence: sorted(
            (p.epsilon, p.f1, _place(p) in unused) for p in points if p.defence == defence and p.f1 is not None
        )
        for defence in DEFENDED
    }
    before = next((point.f1 for point in points if point.defence == UNDEFENDED), None)

    def paint(axes: Axes) -> None:
        floor_line(axes)
        if before is not None:
            axes.axhline(before, color=INK, linestyle=":", linewidth=1.2)
        for defence, line in lines.items():
            color, mark = DEFENDED[defence]
            axes.plot([at for at, _, _ in line], [value for _, value, _ in line], color=color, linewidth=1.3)
            for hollow in (False, True):
                some = [(at, value) for at, value, empty in line if empty == hollow]
                face: Style = {"markerfacecolor": "none"} if hollow else {}
                spots = [at for at, _ in some], [value for _, value in some]
                axes.plot(*spots, color=color, marker=mark, markersize=5, linestyle="none", **face)
        _budget_axis(axes, [p.epsilon for p in points if p.epsilon])
        axes.set_ylim(*limits)

    said = "; ".join(
        f"{DEFENCES[defence]}: " + ", ".join(f"ε {at:g} {short(value)}" for at, value, _ in line)
        for defence, line in lines.items()
        if line
    )
    title = FAMILIES[family]
    alt = f"F1 of {title} against epsilon. {said}. No defence: {short(before)}. Floor {short(FLOOR)}."
    return panel(name, title, alt, paint, ("epsilon", "F1"))


def _budget_axis(axes: Axes, budgets: Sequence[float]) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator  # noqa: PLC0415 (heavy)

    shown = sorted(set(budgets))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(shown, [f"{one:g}" for one in shown])
    if shown:
        axes.set_xlim(shown[0] / 1.2, shown[-1] * 1.2)


def draw_tradeoff(document: Reproduction) -> Figures:
    """MRR against the decrease of the mean F1, one panel per model and column."""
    figure, groups = document.tradeoff, []
    for column in COLUMNS:
        panels = []
        for data, model in dict.fromkeys((point.data, point.model) for point in figure.points):
            own = [p for p in figure.points if (p.column, p.data, p.model) == (column, data, model)]
            if any(point.epsilon for point in own):
                panels.append(_trade(f"tradeoff-{model}-{column}", column, own, _counting(document, data, column)))
        if panels:
            groups.append(Group(COLUMN_NAMES[column].capitalize(), tuple(panels)))
    entries: list[Entry] = [
        (DEFENCES[name], {"color": color, "marker": mark}) for name, (color, mark) in DEFENDED.items()
    ]
    entries.append(("no defence", {"color": INK, "marker": "*", "markersize": 9, "linestyle": "none"}))
    entries += [("popularity", {"color": LIMIT}), ("popularity, epsilon 1", {"color": LIMIT, "linestyle": DASHED})]
    return Figures(legend("tradeoff-legend", entries), tuple(groups))


def _counting(document: Reproduction, data: str, column: Column) -> list[tuple[str, float]]:
    found = []
    for control in document.tradeoff.controls:
        if control.data == data and control.name in CONTROLS:
            if column == "published" and control.published:
                found.append((control.name, control.published.mrr))
            if column == "sound" and control.sound:
                found.append((control.name, control.sound.both.value))
    return found


Label: TypeAlias = tuple[tuple[float, float], str]
APART = (0.25, 0.08)
"""Of the width and height: labels that are nearer than both would cover each other."""


def _apart(labels: Sequence[Label], width: tuple[float, float], height: tuple[float, float]) -> list[Label]:
    """The labels with room around them; of a heap none, the table below has its numbers."""
    spans = (APART[0] * (width[1] - width[0]), APART[1] * (height[1] - height[0]))

    def covered(one: Label, other: Label) -> bool:
        return one is not other and all(abs(one[0][side] - other[0][side]) < spans[side] for side in (0, 1))

    return [one for one in labels if not any(covered(one, other) for other in labels)]


def _budgets(line: Sequence[Trade]) -> list[Label]:
    """Where the line begins and ends, and with which budgets; several budgets may show the same model."""
    spots: dict[tuple[float, float], list[float]] = {}
    for point in line:
        spots.setdefault((point.mrr, point.decrease), []).append(point.epsilon)
    found = list(spots.items())
    ends = found if len(found) < 2 else [found[0], found[-1]]
    return [(spot, f"{min(some):g}" + (f" to {max(some):g}" if len(some) > 1 else "")) for spot, some in ends]


def _trade(name: str, column: Column, points: Sequence[Trade], counting: Sequence[tuple[str, float]]) -> Panel:
    def paint(axes: Axes) -> None:
        labels: list[Label] = []
        for control, value in counting:
            axes.axvline(value, color=LIMIT, linestyle=DASHED if "epsilon" in control else "-", linewidth=1.1)
        for defence, (color, mark) in DEFENDED.items():
            line = sorted((point for point in points if point.defence == defence), key=lambda point: point.epsilon)
            axes.plot(
                [p.mrr for p in line], [p.decrease for p in line], color=color, marker=mark, markersize=5, linewidth=0.7
            )
            labels += _budgets(line)
        for point in points:
            if point.defence == UNDEFENDED:
                axes.plot([point.mrr], [point.decrease], color=INK, marker="*", markersize=10, linestyle="none")
        axes.margins(0.12)
        axes.set_xlim(left=0)
        for spot, text in _apart(labels, axes.get_xlim(), axes.get_ylim()):
            axes.annotate(text, spot, (4, 4), textcoords="offset points")

    said = "; ".join(
        f"{defence_name(p.defence, p.epsilon)}: MRR {short(p.mrr)}, decrease {short(p.decrease)}" for p in points
    )
    lines = "; ".join(f"{control} {short(value)}" for control, value in counting)
    side = "tail MRR" if column == "published" else "both-sided MRR"
    title = f"{model_name(points[0].model)} on {data_name(points[0].data)}"
    alt = f"{title}: decrease of the mean F1 against {side}. {said}. Vertical lines: {lines or 'none'}."
    return panel(name, title, alt, paint, (side, "decrease of mean F1"))
