"""The paper's figure of attacks over rounds, with ROC curves: undefended federations."""

from __future__ import annotations

from dataclasses import dataclass

from paper.points import (
    FLOOR,
    OURS,
    Cells,
    Curve,
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

PART = "figure-rounds"


@dataclass(frozen=True, slots=True)
class Series:
    """One form of an attack, round by round; `printed` is the form that the paper writes down."""

    data: str
    model: str
    family: str
    attack: str
    printed: bool
    rounds: tuple[int, ...]
    best_f1: tuple[float, ...]
    calibrated_f1: tuple[float | None, ...]
    auc: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Roc:
    """A curve: as published of the round with the highest F1, sound of the last round."""

    data: str
    model: str
    family: str
    column: str
    attack: str
    round: int
    curve: Curve


@dataclass(frozen=True, slots=True)
class RoundsFigure:
    """What the figure draws, and the federations that it has not got."""

    series: tuple[Series, ...]
    curves: tuple[Roc, ...]
    worth: tuple[Worth, ...]
    missing: tuple[tuple[str, str], ...]
    files: tuple[str, ...]
    floor: float = FLOOR

    def of(self, data: str, model: str, family: str, printed: bool = False) -> Series | None:
        """One line of the figure."""
        wanted = (data, model, family, printed)
        return next((one for one in self.series if (one.data, one.model, one.family, one.printed) == wanted), None)


def rounds_figure(settings: Settings, cells: Cells) -> RoundsFigure:
    """Per attack the form with the highest F1, and the printed one beside it where that is another.

    >>> from paper.settings import default_folder
    >>> rounds_figure(Settings(default_folder()), {}).series
    ()
    """
    part = settings.part(PART)
    pairs = [(data, model) for data in part["data"] for model in part["models"]]
    keys = {pair: undefended(*pair, settings) for pair in pairs}
    series: list[Series] = []
    curves: list[Roc] = []
    for pair, key in keys.items():
        for family, forms in families(settings).items():
            if family != OURS:
                points = points_of(cells.get(key), forms)
                series += _lines(*pair, family, forms[0], points)
                curves += _curves(*pair, family, points)
    return RoundsFigure(
        tuple(series),
        tuple(curves),
        tuple(worth_of(*pair, cells.get(key)) for pair, key in keys.items()),
        tuple(pair for pair, key in keys.items() if key not in cells),
        tuple(file_of(key) for key in keys.values() if key in cells),
    )


def _lines(data: str, model: str, family: str, printed: str, points: tuple[Point, ...]) -> list[Series]:
    best = highest([point for point in points if point.attack != printed]) or highest(points)
    names = [name for name in dict.fromkeys((best.attack, printed)) if name] if best else []
    lines = []
    for name in names:
        own = sorted((point for point in points if point.attack == name), key=lambda point: point.round)
        if own:
            lines.append(
                Series(
                    data,
                    model,
                    family,
                    name,
                    name == printed and len(names) > 1,
                    tuple(point.round for point in own),
                    tuple(point.best_f1 for point in own),
                    tuple(point.calibrated_f1 for point in own),
                    tuple(point.auc.value for point in own),
                )
            )
    return lines


def _curves(data: str, model: str, family: str, points: tuple[Point, ...]) -> list[Roc]:
    chosen = {"published": highest(points), "sound": exposed(points)}
    return [
        Roc(data, model, family, column, point.attack, point.round, point.curve)
        for column, point in chosen.items()
        if point and point.curve
    ]
