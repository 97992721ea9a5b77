"""Table 1 of the paper: how well SI, CIP and CIA tell members apart in undefended federations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paper.points import (
    FLOOR,
    HELD_OUT,
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
from paper.worth import Worth, worth_of

PART = "table-attacks"


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One attack on one federation: the paper, the printed form, the strongest form, and what a sound look sees."""

    data: str
    model: str
    family: str
    paper: float | None
    printed: Point | None
    """The published form at its best round."""
    best: Point | None
    """The form and round with the highest F1."""
    last: Point | None
    """The strongest form by AUC at the last round, on canaries."""
    strict: Point | None
    """The same, on real triples against held-out real ones."""
    file: str
    measured: bool


@dataclass(frozen=True, slots=True)
class AttackTable:
    """All of them, and what the attacked federations are worth."""

    rows: tuple[AttackRow, ...]
    worth: tuple[Worth, ...]
    floor: float = FLOOR

    def row(self, data: str, model: str, family: str) -> AttackRow | None:
        """One row by name."""
        return next((row for row in self.rows if (row.data, row.model, row.family) == (data, model, family)), None)


def attack_table(settings: Settings, cells: Cells) -> AttackTable:
    """Every row that the settings ask for, measured or not.

    >>> from paper.settings import default_folder
    >>> len(attack_table(Settings(default_folder()), {}).rows)
    32
    """
    part, forms = settings.part(PART), families(settings)
    pairs = [(data, model) for data in part["data"] for model in part["models"]]
    rows = tuple(_row(data, model, name, settings, cells) for data, model in pairs for name in forms)
    worth = tuple(worth_of(data, model, cells.get(undefended(data, model, settings))) for data, model in pairs)
    return AttackTable(rows, worth)


def _row(data: str, model: str, family: str, settings: Settings, cells: Cells) -> AttackRow:
    key, forms = undefended(data, model, settings), families(settings)[family]
    cell, paper = cells.get(key), settings.part(PART).get("paper", {})
    points = points_of(cell, forms)
    printed = () if family == OURS else points_of(cell, forms[:1])
    return AttackRow(
        data,
        model,
        family,
        paper.get(data, {}).get(family, {}).get(model),
        _plain(highest(printed)),
        _plain(highest(points)),
        _plain(exposed(points)),
        _plain(exposed(points_of(cell, forms, HELD_OUT))),
        file_of(key),
        cell is not None,
    )


def _plain(point: Point | None) -> Point | None:
    """Without the curve, which the figure has."""
    return replace(point, curve=None) if point else None
