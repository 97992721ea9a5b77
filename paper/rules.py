"""The claims as they are written down in claims.toml, and what a quantity says about one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from paper.cells import Cell, Column
from paper.figure_defence import DefenceFigure
from paper.figure_rounds import RoundsFigure
from paper.figure_tradeoff import TradeoffFigure
from paper.names import BILINEAR, DISTANCE
from paper.table_attacks import AttackTable
from paper.table_utility import UtilityTable

Answer: TypeAlias = Literal["holds", "does not hold", "cannot be tested", "not run yet"]
Relation: TypeAlias = Literal["above", "below", "at least", "at most", "within"]
MODELS = {"all": DISTANCE + BILINEAR, "distance": DISTANCE, "bilinear": BILINEAR}
NEVER = float("-inf")
"""The number of a place that cannot agree."""


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a number must lie beside the one it is compared with.

    >>> Expected("at least", times=0.8).agrees(0.25, 0.3), Expected("within", by=0.05).agrees(0.7, 0.8)
    (True, False)
    """

    relation: Relation = msgspec.field(name="is")
    times: float = 1.0
    by: float = 0.0

    def agrees(self, own: float, other: float) -> bool:
        """Whether it does."""
        limit = self.times * other + self.by
        agrees = {
            "above": own > limit,
            "below": own < limit,
            "at least": own >= limit,
            "at most": own <= limit,
            "within": abs(own - other) <= self.by,
        }
        return agrees[self.relation]


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reason, and the same in a few words; names in braces stand for what a quantity found."""

    reason: str
    brief: str


class Measured(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A claim that cells decide; claims.toml explains the fields."""

    name: str
    where: str
    says: str
    part: str
    """The table or figure that it is about."""
    quantity: str
    expected: Expected
    of: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    models: Literal["all", "distance", "bilinear"] = "all"
    form: Literal["printed", "best", "last", "strict"] = "best"
    column: Column = "published"
    budgets: tuple[float, ...] = ()
    rounds: int = 1
    """The fewest attacked rounds of a curve."""
    slack: float = 0.0
    """By how much the fall of F1 may be smaller than that of what it is compared with."""
    share: float = 1.0
    unit: str = "cells"
    leave_out_guessing: bool = False
    """Whether places where attacks only guess against either defence have no vote."""
    note: str = ""
    beside: str = ""
    """A sentence for the end of the note, where what it speaks of was measured."""
    reason: str = ""
    brief: str = ""
    untested: Mapping[str, Text] = {}
    """By cause: what to say where cells cannot decide it."""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim that no cell decides."""

    name: str
    where: str
    says: str
    answer: Answer
    reason: str
    evidence: str


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them."""

    measured: tuple[Measured, ...]
    written: tuple[Written, ...]


@cache
def read_claims() -> Claims:
    """The claims that come with this package.

    >>> sum(map(len, (read_claims().measured, read_claims().written)))
    65
    """
    return msgspec.toml.decode((Path(__file__).parent / "claims.toml").read_bytes(), type=Claims)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that was measured."""

    attacks: AttackTable
    utility: UtilityTable
    rounds: RoundsFigure
    defence: DefenceFigure
    tradeoff: TradeoffFigure
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """One place where a claim can be looked at: its number, the one it is compared with, both in words.

    None: not run yet. `guessing`: attacks only guess there, so that it says nothing about which defence is better.
    """

    own: float | None
    other: float
    words: str
    group: str = ""
    guessing: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a quantity found: places, or the cause why cells cannot decide; `words` stand in the claim's texts."""

    places: tuple[Place, ...] = ()
    cause: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
