"""The paper's figure of utility against defence: MRR against what a defence takes from the attacks."""

from __future__ import annotations

from dataclasses import dataclass

from paper.cells import COLUMNS, Column
from paper.figure_defence import UNDEFENDED, DefenceFigure
from paper.points import Cells, undefended
from paper.settings import Settings
from paper.worth import Control, ranked, sides

PART = "figure-tradeoff"


@dataclass(frozen=True, slots=True)
class Trade:
    """One federation: MRR in the metric of its column, and by how much the mean F1 of the attacks fell."""

    data: str
    model: str
    column: Column
    defence: str
    epsilon: float
    mrr: float
    decrease: float


@dataclass(frozen=True, slots=True)
class TradeoffFigure:
    """All points, and the controls that stand as lines."""

    points: tuple[Trade, ...]
    controls: tuple[Control, ...]

    def of(self, model: str, column: Column, defence: str) -> dict[float, Trade]:
        """A defence's points by budget."""
        wanted = (model, column, defence)
        return {one.epsilon: one for one in self.points if (one.model, one.column, one.defence) == wanted}


def tradeoff_figure(settings: Settings, cells: Cells, defence: DefenceFigure) -> TradeoffFigure:
    """From the cells of figure-defence.

    >>> from paper.figure_defence import defence_figure
    >>> from paper.settings import default_folder
    >>> settings = Settings(default_folder())
    >>> tradeoff_figure(settings, {}, defence_figure(settings, {})).points
    ()
    """
    part = settings.part(PART)
    points = []
    for data in part["data"]:
        for model in part["models"]:
            for column in COLUMNS:
                points += _undefended(data, model, column, settings, cells)
                points += _defended(data, model, column, [float(one) for one in part.get("budgets", ())], defence)
    return TradeoffFigure(tuple(points), defence.controls)


def _undefended(data: str, model: str, column: Column, settings: Settings, cells: Cells) -> list[Trade]:
    """The federation that was attacked: by definition nothing is taken away there."""
    cell = cells.get(undefended(data, model, settings))
    tail, both = (ranked(cell.utility), sides([cell.utility])) if cell else (None, None)
    if not tail or not both:
        return []
    return [Trade(data, model, column, UNDEFENDED, 0.0, tail.mrr if column == "published" else both.both.value, 0.0)]


def _defended(data: str, model: str, column: Column, budgets: list[float], figure: DefenceFigure) -> list[Trade]:
    points = []
    for cell in figure.cells:
        if (cell.data, cell.model, cell.column) != (data, model, column) or cell.epsilon not in budgets:
            continue
        means = figure.means(data, model, column, cell.defence, cell.epsilon)
        if means and cell.mrr is not None:
            points.append(Trade(data, model, column, cell.defence, cell.epsilon, cell.mrr, means[0] - means[1]))
    return points
