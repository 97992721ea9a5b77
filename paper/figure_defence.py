"""The paper's figure of attacks after defence: each attack against each defence, budget by budget."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from fedkge.audit.metrics import Estimate
from paper.cells import COLUMNS, Cell, Column, Key
from paper.plan import cells_of
from paper.points import (
    FLOOR,
    OURS,
    Cells,
    Point,
    exposed,
    families,
    file_of,
    highest,
    points_of,
    undefended,
)
from paper.settings import Settings
from paper.worth import Control, controls_of

PART = "figure-defence"
UNDEFENDED = "none"


@dataclass(frozen=True, slots=True)
class Struck:
    """One attack on one defended federation (on an undefended one: epsilon 0).

    `f1` is the highest of any form as published, with a threshold from the targets; in the sound column that of the
    strongest form by AUC, with a calibrated threshold.
    """

    data: str
    model: str
    column: Column
    defence: str
    epsilon: float
    family: str
    attack: str
    f1: float | None
    auc: Estimate
    round: int


@dataclass(frozen=True, slots=True)
class DefenceCell:
    """One defended federation at one budget, and what it is worth in the metric of its column."""

    data: str
    model: str
    column: Column
    defence: str
    epsilon: float
    round: int
    rounds: int
    exhausted: bool
    spent: float | None
    spent_all_orders: float | None
    """By the printed formulas at orders that their lemma excludes: what ends an as-published run."""
    mrr: float | None
    file: str


@dataclass(frozen=True, slots=True)
class DefenceFigure:
    """All points, undefended ones included, and the cells that have not been run."""

    points: tuple[Struck, ...]
    cells: tuple[DefenceCell, ...]
    controls: tuple[Control, ...]
    missing: tuple[Key, ...]
    paper_before: float | None
    paper_after: float | None
    floor: float = FLOOR

    def at(self, data: str, model: str, column: Column, defence: str, epsilon: float, family: str) -> Struck | None:
        """One point."""
        wanted = (data, model, column, defence, epsilon, family)
        found = (p for p in self.points if (p.data, p.model, p.column, p.defence, p.epsilon, p.family) == wanted)
        return next(found, None)

    def means(self, data: str, model: str, column: Column, defence: str, epsilon: float) -> tuple[float, float] | None:
        """Mean F1 before and after, over those of the paper's three attacks that were played both times."""
        pairs = []
        for family in dict.fromkeys(point.family for point in self.points if point.family != OURS):
            before = self.at(data, model, column, UNDEFENDED, 0.0, family)
            after = self.at(data, model, column, defence, epsilon, family)
            if before and after and before.f1 is not None and after.f1 is not None:
                pairs.append((before.f1, after.f1))
        return (fmean(one for one, _ in pairs), fmean(one for _, one in pairs)) if pairs else None


def defence_figure(settings: Settings, cells: Cells) -> DefenceFigure:
    """Every point that is there.

    >>> from paper.settings import default_folder
    >>> figure = defence_figure(Settings(default_folder()), {})
    >>> len(figure.points), len(figure.missing) > 50
    (0, True)
    """
    part = settings.part(PART)
    keys = [key for key in cells_of(settings, PART) if key.defence != UNDEFENDED]
    points: list[Struck] = []
    for data in part["data"]:
        for model in part["models"]:
            cell = cells.get(undefended(data, model, settings))
            for column in COLUMNS:
                if cell:
                    points += _struck(Key(data, model, column, UNDEFENDED, 0.0, 0), cell, settings)
    for key in keys:
        if key in cells:
            points += _struck(key, cells[key], settings)
    paper = part.get("paper", {})
    return DefenceFigure(
        tuple(points),
        tuple(_cell(cells[key]) for key in keys if key in cells),
        tuple(control for data in part["data"] for control in controls_of(data, cells)),
        tuple(key for key in keys if key not in cells),
        paper.get("mean-f1-before"),
        paper.get("mean-f1-after"),
    )


def _struck(place: Key, cell: Cell, settings: Settings) -> list[Struck]:
    found = []
    for family, forms in families(settings).items():
        points = points_of(cell, forms)
        point = highest(points) if place.column == "published" else exposed(points)
        if point:
            found.append(_one(place, family, point))
    return found


def _one(place: Key, family: str, point: Point) -> Struck:
    f1 = point.best_f1 if place.column == "published" else point.calibrated_f1
    return Struck(
        place.data,
        place.model,
        place.column,
        place.defence,
        place.epsilon,
        family,
        point.attack,
        f1,
        point.auc,
        point.round,
    )


def _cell(cell: Cell) -> DefenceCell:
    key = cell.key
    subset, metric = ("seen", "tail.mrr") if key.column == "published" else ("all", "both.mrr")
    return DefenceCell(
        key.data,
        key.model,
        key.column,
        key.defence,
        key.epsilon,
        cell.round,
        cell.rounds,
        cell.exhausted,
        cell.spent.get(key.column),
        cell.spent.get("published, all orders"),
        cell.utility.get(subset, {}).get(metric),
        file_of(key),
    )
