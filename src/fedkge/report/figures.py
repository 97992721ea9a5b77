"""The report's figures: numbers of the document in, SVG out; the same document gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fedkge.report.document import Document
from fedkge.report.promised import roc_limit
from fedkge.report.svg import DASHES, GRID, INK, LIMIT, MUTED, SERIES, SETTINGS, ZONE, new_figure, to_svg
from fedkge.report.verdict import CHANCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWEST = 1e-3
"""Where the logarithmic axes begin, unless the non-members support smaller rates."""


def draw(document: Document) -> dict[str, str]:
    """Every figure that the document describes, by name, in stand-in colours (see `svg`)."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)

    makers: dict[str, Callable[[Document, str], Figure]] = {
        "roc": _roc,
        "auc": _auc_by_round,
        "epsilon": _epsilon_by_round,
        "utility": _utility,
    }
    drawn = {}
    for text in document.figures:
        kind, _, design = text.name.partition("-")
        with mpl.rc_context(SETTINGS):
            drawn[text.name] = to_svg(makers[kind](document, design), text.name)
    return drawn


def _axes(figure: Figure, across: str, up: str) -> Axes:
    axes = figure.add_subplot(facecolor="none")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True)
    axes.set_axisbelow(True)
    return axes


def _legend(figure: Figure, columns: int = 2) -> None:
    figure.legend(loc="outside lower center", ncols=columns, handlelength=2.8, columnspacing=1.2)


def _roc(document: Document, design: str) -> Figure:
    import numpy as np  # noqa: PLC0415

    facts = next(one for one in document.attacks.designs if one.design == design)
    figure = new_figure(height=4.3)
    axes = _axes(figure, "false-positive rate", "true-positive rate")
    lowest = min(LOWEST, facts.smallest_fpr / 3)
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1.15))
    axes.axvspan(lowest, facts.smallest_fpr, color=ZONE, alpha=0.35, linewidth=0)
    axes.plot([lowest, 1], [lowest, 1], color=MUTED, linestyle=":", linewidth=1, label="guessing")
    claim = document.claim
    if claim.epsilon is not None:
        rates = np.geomspace(lowest, 1, 60)
        most = [roc_limit(rate, claim.epsilon, claim.delta) for rate in rates.tolist()]
        axes.plot(rates, most, color=LIMIT, linestyle=(0, (4, 3)), linewidth=1.4, label="most the claim allows")
    for place, curve in enumerate(_strongest_first(document, design)):
        axes.plot(
            np.maximum(curve.fpr, lowest / 10),
            np.maximum(curve.tpr, lowest / 10),
            color=SERIES[place],
            linestyle=DASHES[place],
            linewidth=1.5,
            label=curve.attack,
        )
    _percent_ticks(axes)
    _legend(figure)
    return figure


def _percent_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: PLC0415 (heavy)

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
        axis.set_minor_formatter(NullFormatter())
        axis.set_tick_params(which="minor", length=0)


def _strongest_first(document: Document, design: str) -> list[Any]:
    strength = {(row.attack, row.adversary): row.auc.value for row in document.attacks.rows if row.design == design}
    curves = [curve for curve in document.attacks.curves if curve.design == design]
    ordered = sorted(curves, key=lambda curve: (-strength[curve.attack, curve.adversary], curve.attack))
    return ordered[: len(SERIES)]


def _auc_by_round(document: Document, design: str) -> Figure:
    figure = new_figure()
    axes = _axes(figure, "round", "AUC")
    axes.axhline(CHANCE, color=MUTED, linestyle=":", linewidth=1, label="guessing")
    series = {(one.attack, one.adversary): one for one in document.attacks.by_round if one.design == design}
    for place, curve in enumerate(_strongest_first(document, design)):
        one = series[curve.attack, curve.adversary]
        if place == 0:
            low, high = [auc.low for auc in one.auc], [auc.high for auc in one.auc]
            axes.fill_between(one.rounds, low, high, color=SERIES[0], alpha=0.18, linewidth=0)
        values = [auc.value for auc in one.auc]
        axes.plot(one.rounds, values, color=SERIES[place], linestyle=DASHES[place], linewidth=1.5, label=one.attack)
    axes.set_ylim(min(0.4, axes.get_ylim()[0]), 1.02)
    _whole_rounds(axes)
    _legend(figure)
    return figure


def _epsilon_by_round(document: Document, _: str) -> Figure:
    figure = new_figure()
    axes = _axes(figure, "round", "epsilon")
    spending, claim, audit = document.spending[0], document.claim, document.audit
    axes.plot(spending.rounds, spending.epsilon, color=SERIES[0], marker="o", markersize=3, label="spent (at most)")
    if claim.promised is not None:
        axes.axhline(claim.promised, color=LIMIT, linestyle=(0, (4, 3)), linewidth=1.4, label="budget")
    if audit.largest is not None:
        last = audit.round or spending.rounds[-1]
        reach = [[0.0], [max(0.0, audit.largest.ceiling - audit.largest.epsilon)]]
        axes.errorbar(
            [last],
            [audit.largest.epsilon],
            yerr=reach,
            color=SERIES[1],
            marker="^",
            markersize=6,
            capsize=4,
            linewidth=1,
            label="shown by the audit (at least), up to what it could show",
        )
    axes.set_ylim(bottom=0)
    _whole_rounds(axes)
    _legend(figure, columns=1)
    return figure


def _whole_rounds(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (heavy)

    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _utility(document: Document, _: str) -> Figure:
    rows = [row for row in document.utility.rows if row.kind != "client"][::-1]
    figure = new_figure(height=1.5 + 0.38 * len(rows))
    axes = _axes(figure, "MRR (filtered, test)", "")
    axes.grid(False, axis="y")
    for place, row in enumerate(rows):
        axes.plot([row.head, row.tail], [place, place], color=GRID, linewidth=2, zorder=1)
    sides = (("head", "<", SERIES[2]), ("both", "D", INK), ("tail", ">", SERIES[0]))
    for side, marker, color in sides:
        values = [getattr(row, side) for row in rows]
        axes.plot(values, range(len(rows)), color=color, marker=marker, markersize=6, linestyle="none", label=side)
    axes.set_yticks(range(len(rows)), [_folded(row.name) for row in rows])
    axes.set_xlim(left=0)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    _legend(figure, columns=3)
    return figure


def _folded(name: str, width: int = 22) -> str:
    """A name in short lines, for an axis.

    >>> _folded("transe, fede, recommended at epsilon 8").split(chr(10))
    ['transe, fede,', 'recommended at epsilon', '8']
    """
    import textwrap  # noqa: PLC0415

    return "\n".join(textwrap.wrap(name, width))
