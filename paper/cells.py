"""A cell: one federation at one budget, measured. Tables and figures are made of cells, and each is one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from fedkge.base.errors import ConfigurationError, RunError
from paper.grid import Files

Column: TypeAlias = Literal["published", "sound"]
COLUMNS: tuple[Column, ...] = get_args(Column)
FOLDER = "cells"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Which cell: no budget means no defence.

    >>> str(Key("fb15k-237", "transe", "sound", "recommended", 16, 11))
    'fb15k-237.transe.sound.recommended.e16.s11'
    """

    data: str
    model: str
    column: Column
    defence: str
    epsilon: float
    seed: int

    def __str__(self) -> str:
        budget = f".e{self.epsilon:g}" if self.epsilon else ""
        return f"{self.data}.{self.model}.{self.column}.{self.defence}{budget}.s{self.seed}"

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key that is written like this.

        >>> Key.parse("nell-995.rotate.published.none.s11").epsilon
        0.0
        """
        parts = text.split(".")
        try:
            data, model, column, defence = parts[:4]
            budget = [part[1:] for part in parts[4:] if part.startswith("e")]
            (seed,) = [part[1:] for part in parts[4:] if part.startswith("s")]
            if column not in COLUMNS or len(parts) != 5 + len(budget) or len(budget) > 1:
                raise ValueError(text)
            return cls(data, model, column, defence, float(budget[0]) if budget else 0.0, int(seed))
        except ValueError as error:
            raise ConfigurationError(
                f"{text!r} is no part and no cell: expected a cell like fb15k-237.transe.sound.recommended.e16.s11"
            ) from error


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured.

    `utility` and `controls` hold metrics like tail.mrr: of all test triples, and under `seen` of those whose names
    occur in their client's training triples. `attacks` holds one entry per attack, design and round. `spent` is the
    largest epsilon of any client by the sound accountant and by the paper's formulas; None: no guarantee.
    """

    key: Key
    round: int
    rounds: int
    digest: str
    version: str
    command: str
    date: str
    seconds: Mapping[str, float]
    configuration: Mapping[str, Any]
    utility: Mapping[str, Mapping[str, float]]
    controls: Mapping[str, Mapping[str, Mapping[str, float]]]
    attacks: tuple[Mapping[str, Any], ...] = ()
    spent: Mapping[str, float | None] = field(default_factory=dict)
    exhausted: bool = True
    """Whether the budget ended the training; else the planned rounds did."""
    tests: Mapping[str, int] = field(default_factory=dict)
    """Propose-test-release tests made and passed in the whole run, all clients together."""

    def write(self, folder: Path) -> Path:
        """Put it where the others are."""
        store = cell_store(folder)
        store.add(str(self.key), asdict(self))
        return store.path(str(self.key))


def cell_store(folder: Path) -> Files:
    """The cells of a folder of results."""
    return Files(folder / FOLDER)


def path_of(folder: Path, key: Key) -> Path:
    """Where a cell is kept."""
    return cell_store(folder).path(str(key))


def read_cell(path: Path) -> Cell:
    """A cell from its file."""
    return _cell(Files(path.parent).read(path.stem), path)


def read_cells(folder: Path) -> dict[Key, Cell]:
    """All cells of a folder of results."""
    found = (_cell(content, folder) for content in cell_store(folder).cells())
    return {cell.key: cell for cell in found}


def _cell(content: dict[str, Any], where: Path) -> Cell:
    try:
        return Cell(**{**content, "key": Key(**content["key"]), "attacks": tuple(content["attacks"])})
    except (KeyError, TypeError) as error:
        raise RunError(f"{where}: not a cell of this version ({error}); remove it, and it is measured again") from error
