"""Cells as a grid would leave them, made up: numbers follow a formula, so that tests know what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from paper.cells import Cell, Key
from paper.plan import wanted
from paper.points import families
from paper.settings import Settings, default_folder

QUICK = Settings(default_folder(), quick=True)
FULL = Settings(default_folder())
MRR = {"none": 0.4, "dpsgd": 0.1, "dp-flames": 0.2, "dp-flames-adaptive": 0.3, "dp-flames-untested": 0.25}
STRENGTH = {"si": 0.95, "cip": 0.85, "cia": 0.9, "ours": 0.97}


def metrics(mrr: float) -> dict[str, dict[str, float]]:
    """As `watching.look` keeps them."""
    sides = {"tail": mrr, "head": mrr / 2, "both": 0.75 * mrr}
    names = {"mrr": 1.0, "hits_at_1": 0.7, "hits_at_10": 1.6}
    found = {
        f"{side}.{name}": round(value * times, 5) for side, value in sides.items() for name, times in names.items()
    }
    return {"all": found, "seen": found}


def attack(name: str, adversary: str, design: str, number: int, f1: float, auc: float, curve: bool) -> dict[str, Any]:
    """As `measure.plain` keeps one."""
    tpr = max(0.0, 2 * auc - 1.1)
    entry: dict[str, Any] = {
        "attack": name,
        "adversary": adversary,
        "design": design,
        "round": number,
        "members": 500,
        "non_members": 500,
        "level": 0.95,
        "auc": {"value": auc, "low": auc - 0.03, "high": min(1.0, auc + 0.03)},
        "tpr": [{"fpr": 0.01, "value": tpr, "low": max(0.0, tpr - 0.02), "high": tpr + 0.02, "reason": ""}],
        "best_f1": {"value": f1, "threshold": 0.0, "chosen_on": "the test set itself"},
        "calibrated_f1": {"value": f1 - 0.02, "threshold": 0.0, "chosen_on": "calibration triples"},
        "floor_f1": 2 / 3,
    }
    if curve:
        entry["roc"] = {"fpr": [0.0, 1 - auc, 1.0], "tpr": [0.0, auc, 1.0]}
    return entry


def attacks_of(key: Key, settings: Settings) -> tuple[dict[str, Any], ...]:
    """CIP, SI and ours rise with the rounds, CIA falls; a defence brings all of them down to guessing."""
    found = []
    rounds = (5, 10, 15, 20) if key.defence == "none" else (20,)
    for family, forms in families(settings).items():
        if family == "si" and key.model in ("distmult", "complex"):
            continue
        for place, name in enumerate(forms):
            printed = place == 0 and family in ("si", "cip")
            for number in rounds:
                gain = 0.005 * number if family != "cia" else -0.005 * number
                f1 = 0.667 if printed or key.defence != "none" else STRENGTH[family] - 0.1 + gain - 0.001 * place
                auc = 0.5 if printed or key.defence != "none" else f1
                designs = ("C",) if family == "cia" or key.defence != "none" else ("B", "C")
                for design in designs:
                    strength = auc if design == "C" else 0.5 + (auc - 0.5) / 3
                    server = "client" if family in ("cip", "cia") else "server"
                    found.append(attack(name, server, design, number, f1, strength, number == 20))
    return tuple(found)


def cell(key: Key, settings: Settings = FULL) -> Cell:
    """One cell."""
    mrr = MRR.get(key.defence, 0.33) + 0.001 * key.epsilon / 16 + 0.001 * (key.seed - 11)
    if key.defence == "none" and key.column == "sound":
        mrr += 0.01
    published = key.column == "published"
    spent: Mapping[str, float | None] = {} if not key.epsilon else {"sound": key.epsilon * 0.99}
    if published and key.epsilon:
        spent = {"sound": None, "published": 11.6, "published, all orders": 1.6}
    tested = published and "flames" in key.defence
    return Cell(
        key=key,
        round=20,
        rounds=20,
        digest=f"{key.data}-{key.model}-{key.column}-{key.defence}-{key.seed}",
        version="0.1.0",
        command="fedkge reproduce all --full",
        date="2026-11-16T08:00:00+00:00",
        seconds={"training": 100.0, "attacks": 20.0},
        configuration={"data": key.data},
        utility=metrics(mrr),
        controls={"popularity": metrics(0.32), "popularity, epsilon 1": metrics(0.31)},
        attacks=() if (key.column, key.defence) == ("sound", "none") else attacks_of(key, settings),
        spent=spent,
        exhausted=not (published and key.epsilon),
        tests={"made": 1000, "passed": 0} if tested else {},
    )


def grid(settings: Settings = FULL) -> dict[Key, Cell]:
    """Every cell that is asked for."""
    return {key: cell(key, settings) for key in wanted(settings, ["all"])}


Change = Callable[[dict[Key, Cell]], dict[Key, Cell]]


def ranks(mrr: float, column: str, *defences: str) -> Change:
    """These cells rank like this."""
    return lambda cells: {
        key: replace(one, utility=metrics(mrr)) if (key.column, key.defence in defences) == (column, True) else one
        for key, one in cells.items()
    }


def struck(
    family: str,
    f1: float,
    auc: float | None = None,
    *,
    models: tuple[str, ...] = ("transe", "rotate", "distmult", "complex"),
    defences: tuple[str, ...] = ("none",),
    rounds: tuple[int, ...] = (5, 10, 15, 20),
) -> Change:
    """This attack succeeds like this in these cells."""

    def entry(one: Mapping[str, Any]) -> Mapping[str, Any]:
        ours = families(FULL)[family]
        if one["attack"] not in ours or one["round"] not in rounds:
            return one
        place = (one["attack"], one["adversary"], one["design"], one["round"])
        return attack(*place, f1, f1 if auc is None else auc, "roc" in one)

    return lambda cells: {
        key: replace(one, attacks=tuple(map(entry, one.attacks)))
        if key.model in models and key.defence in defences
        else one
        for key, one in cells.items()
    }


def all_of(*changes: Change) -> Change:
    """One after another."""

    def change(cells: dict[Key, Cell]) -> dict[Key, Cell]:
        for one in changes:
            cells = one(cells)
        return cells

    return change
