"""What the paper leaves open, and its printed numbers: one TOML file per part, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fedkge.base.errors import ConfigurationError
from fedkge.base.registry import look_up
from fedkge.configuration import Configuration, read_table
from fedkge.defences import parse
from paper.cells import Column, Key

PARTS = ("table-attacks", "table-utility", "figure-rounds", "figure-defence", "figure-tradeoff")
FEDERATIONS = "federations"
Protocol = Literal["none", "crossing", "calibrated"]
Table = Mapping[str, Any]


def default_folder() -> Path:
    """The settings that come with this package."""
    return Path(__file__).parent / "parts"


@dataclass(frozen=True)
class Settings:
    """The settings of all parts; `quick` puts each file's [quick] over it."""

    folder: Path
    quick: bool = False

    @cached_property
    def federations(self) -> Table:
        """The federations that all parts share."""
        return self._read(FEDERATIONS)

    @cached_property
    def parts(self) -> Mapping[str, Table]:
        """Every part's own file, by name; data sets and models it must have."""
        found = {name: self._read(name) for name in PARTS}
        for name, table in found.items():
            for key in ("data", "models"):
                if key not in table:
                    raise ConfigurationError(f"{self.folder / name}.toml: expected a list named {key!r}; there is none")
        return found

    def part(self, name: str) -> Table:
        """The settings of one part."""
        return look_up(dict(self.parts), name, "part")

    @property
    def seeds(self) -> tuple[int, ...]:
        """The first one is used everywhere."""
        found = tuple(self.federations.get("seeds", ()))
        if not found:
            raise ConfigurationError(
                f"{self.folder / FEDERATIONS}.toml: expected seeds, like seeds = [11]; there are none"
            )
        return found

    @property
    def entities(self) -> int:
        """How many entities the sub-graph has; 0 takes all."""
        return int(self.federations.get("entities", 0))

    def protocol(self, column: Column, defence: str) -> Protocol:
        """How this defence keeps a budget."""
        chosen = self._rows(column, defence).get("protocol", "none")
        return look_up({"none": "none", "crossing": "crossing", "calibrated": "calibrated"}, chosen, "protocol")

    def configuration(self, key: Key) -> Configuration:
        """The configuration of the federation that a cell belongs to."""
        return parse(self.options(key))

    def options(self, key: Key) -> dict[str, Any]:
        """The options of that federation, as they are written; the same for all budgets of a crossing run."""
        rows = self._rows(key.column, key.defence)
        chosen = {
            **self.federations.get("all", {}),
            **_plain(self.federations.get(key.column, {}).get("all", {})),
            **({} if key.defence == "none" else {"defence": key.defence}),
            **_plain(rows),
            **_plain(rows.get(key.data, {})),
            **_plain(rows.get(key.model, {})),
            **_plain(rows.get(key.data, {}).get(key.model, {})),
        }
        protocol = chosen.pop("protocol", "none")
        budget = {"epsilon": key.epsilon} if protocol == "calibrated" else {}
        return {**chosen, **budget, "data": key.data, "model": key.model, "seed": key.seed}

    def _rows(self, column: Column, defence: str) -> Table:
        found: Table = look_up(dict(self.federations.get(column, {})), defence, f"defence of the {column} column")
        return found

    def _read(self, name: str) -> Table:
        path = self.folder / f"{name}.toml"
        content = read_table(path, f"no such settings; expected a folder with {name}.toml")
        quick = content.pop("quick", {})
        return merged(content, quick) if self.quick else content


def merged(below: Table, above: Table) -> dict[str, Any]:
    """Two nested tables; where both have a value, that of `above`.

    >>> merged({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 5}})
    {'a': {'x': 1, 'y': 5}, 'b': 3}
    """
    both = dict(below)
    for key, value in above.items():
        nested = isinstance(value, Mapping) and isinstance(both.get(key), Mapping)
        both[key] = merged(both[key], value) if nested else value
    return both


def _plain(table: Table) -> dict[str, Any]:
    """The values of a table without the tables inside it."""
    return {key: value for key, value in table.items() if not isinstance(value, Mapping)}
