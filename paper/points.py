"""What a cell says about attacks, typed: one point is one attack at one round of one federation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fedkge.audit.metrics import Estimate, RateAtFpr
from paper.cells import FOLDER, Cell, Key
from paper.settings import Settings

Cells: TypeAlias = Mapping[Key, Cell]

FLOOR = 2 / 3
"""F1 of calling every target a member, where half of them are."""
CLOSE = 0.02
"""F1 that differ by less are called the same: about the standard error with 1,000 targets."""
CANARIES, HELD_OUT = "C", "B"
LOW_FPR = 0.01
OURS = "ours"


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of an ROC curve."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One attack at one round; `best_f1` has its threshold from the targets, `calibrated_f1` from other triples."""

    attack: str
    adversary: str
    design: str
    round: int
    best_f1: float
    calibrated_f1: float | None
    auc: Estimate
    tpr: RateAtFpr | None
    curve: Curve | None = None


def file_of(key: Key) -> str:
    """A cell's file, from the folder of results.

    >>> file_of(Key("fb15k-237", "transe", "sound", "recommended", 16, 11))
    'cells/fb15k-237.transe.sound.recommended.e16.s11.json'
    """
    return f"{FOLDER}/{key}.json"


def families(settings: Settings) -> dict[str, tuple[str, ...]]:
    """The forms of each of the paper's attacks, its own first, and of ours."""
    attacks = settings.part("table-attacks").get("attacks", {})
    forms = {name: tuple(some) for name, some in attacks.get("families", {}).items()}
    return {**forms, OURS: tuple(attacks.get("ours", ()))}


def points_of(cell: Cell | None, forms: Iterable[str], design: str = CANARIES) -> tuple[Point, ...]:
    """What a cell holds of these attacks; nothing where it is missing."""
    wanted = set(forms)
    found = cell.attacks if cell else ()
    return tuple(_point(one) for one in found if one["attack"] in wanted and one["design"] == design)


def _point(one: Mapping[str, Any]) -> Point:
    low = [RateAtFpr(**rate) for rate in one["tpr"] if rate["fpr"] == LOW_FPR]
    calibrated, roc = one.get("calibrated_f1"), one.get("roc")
    return Point(
        one["attack"],
        one["adversary"],
        one["design"],
        one["round"],
        one["best_f1"]["value"],
        calibrated["value"] if calibrated else None,
        Estimate(**one["auc"]),
        low[0] if low else None,
        Curve(tuple(roc["fpr"]), tuple(roc["tpr"])) if roc else None,
    )


def highest(points: Sequence[Point]) -> Point | None:
    """The form and round with the highest F1, as the paper reports attacks; of equals the first."""
    return max(points, key=lambda point: point.best_f1, default=None)


def exposed(points: Sequence[Point]) -> Point | None:
    """The strongest form, by AUC, at the last attacked round: what a deployed model gives away."""
    last = max((point.round for point in points), default=0)
    return max((point for point in points if point.round == last), key=lambda point: point.auc.value, default=None)


def undefended(data: str, model: str, settings: Settings) -> Key:
    """The cell whose attacks the paper's Table 1 shows."""
    return Key(data, model, "published", "none", 0.0, settings.seeds[0])
