"""Which federations are needed for which cells: what is asked for, what is there already, what is left to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedkge.api.training import check
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.defences import parse
from fedkge.experiments.targets import Design
from paper.cells import COLUMNS, Cell, Key, cell_store, path_of, read_cell
from paper.grid import digest_of
from paper.settings import PARTS, Settings, Table

FIGURES = ("figure-defence", "figure-tradeoff")


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """Which attacks a federation undergoes; `every` counts rounds, 1 takes all that are recorded."""

    passive: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    last_round_only: tuple[str, ...] = ()
    designs: tuple[Design, ...] = ("C",)
    every: int = 1
    cia_every: int = 1
    group_size: int = 600
    waiting_rounds: int = 2


@dataclass(frozen=True, slots=True)
class Work:
    """One federation to train and attack, and the cells that it serves."""

    options: Mapping[str, Any]
    """As the settings write them."""
    configuration: Configuration
    keys: tuple[Key, ...]
    budgets: tuple[float, ...]
    """Where a run with fixed noise is looked at; empty for a run that is looked at once, at its end."""
    attacks: AttackOptions
    entities: int = 0

    @property
    def name(self) -> str:
        """As its run directory is called."""
        first = self.keys[0]
        budget = "" if self.budgets or not first.epsilon else f"-e{first.epsilon:g}"
        head = f"{first.data}-{first.model}-{first.column}-{first.defence}{budget}-s{first.seed}"
        part = f"-{self.entities}" if self.entities else ""
        return f"{head}{part}-{digest_of(self.options)}"

    @property
    def digest(self) -> str:
        """A hash of everything that the settings say about the cells."""
        return digest_of([self.options, self.budgets, asdict(self.attacks), self.entities])

    def pending(self, results: Path) -> tuple[Key, ...]:
        """The cells that are missing, or were measured with other settings."""
        store = cell_store(results)
        return tuple(key for key in self.keys if not store.has(str(key), self.digest))


def wanted(settings: Settings, asked: Sequence[str]) -> tuple[Key, ...]:
    """The cells of what is asked for: `all`, parts, or cells by name; the more important ones first."""
    found: dict[Key, None] = {}
    for name in asked:
        if name == "all":
            found.update(dict.fromkeys(key for part in PARTS for key in cells_of(settings, part)))
        elif name in PARTS:
            found.update(dict.fromkeys(cells_of(settings, name)))
        else:
            found[_known(settings, name)] = None
    return tuple(sorted(found, key=lambda key: _urgency(settings, key)))


def _urgency(settings: Settings, key: Key) -> tuple[bool, bool]:
    """What comes later: cells that a table can do without, and further seeds."""
    kept = settings.part("table-utility").get("first", {}).get(key.data, (key.defence,))
    return key.defence not in kept, key.seed != settings.seeds[0]


def cells_of(settings: Settings, part: str) -> Iterator[Key]:
    """The cells that a part shows."""
    table, first = settings.part(part), settings.seeds[0]
    for data in table["data"]:
        for model in table["models"]:
            if part in ("table-attacks", "figure-rounds"):
                yield Key(data, model, "published", "none", 0, first)
            else:
                yield from _defended(settings, part, data, model)


def _defended(settings: Settings, part: str, data: str, model: str) -> Iterator[Key]:
    table, seeds = settings.part(part), settings.seeds
    source = settings.part("figure-defence") if part in FIGURES else table
    for column in COLUMNS:
        rows = dict.fromkeys(("none", *source.get(column, ())))
        for defence in rows:
            budgets = [0.0] if defence == "none" else table.get("budgets", ())
            several = column == "sound" and defence in table.get("seeds", ())
            for seed in seeds if several else seeds[:1]:
                for budget in budgets:
                    yield Key(data, model, column, defence, float(budget), seed)


def _known(settings: Settings, name: str) -> Key:
    key = Key.parse(name)
    if (key.epsilon == 0) != (key.defence == "none"):
        raise ConfigurationError(f"cell {name!r}: expected a budget like .e16 with a defence, and none without one")
    check(settings.configuration(key))  # an error of its own where defence or model make no sense
    return key


def works(settings: Settings, keys: Iterable[Key]) -> tuple[Work, ...]:
    """The federations that serve these cells, in the order of the first cell of each."""
    groups: dict[Key, list[Key]] = {}
    for key in keys:
        groups.setdefault(_federation(settings, key), []).append(key)
    return tuple(_work(settings, group) for group in groups.values())


def measured(settings: Settings, results: Path) -> dict[Key, Cell]:
    """The cells that are there and were measured with these settings."""
    return {
        key: read_cell(path_of(results, key))
        for work in works(settings, wanted(settings, ["all"]))
        for key in set(work.keys) - set(work.pending(results))
    }


def _federation(settings: Settings, key: Key) -> Key:
    """The same for all cells that one run serves."""
    crossing = settings.protocol(key.column, key.defence) == "crossing"
    return Key(key.data, key.model, key.column, key.defence, 0.0 if crossing else key.epsilon, key.seed)


def _work(settings: Settings, keys: Sequence[Key]) -> Work:
    first = keys[0]
    crossing = settings.protocol(first.column, first.defence) == "crossing"
    budgets = _all_budgets(settings) if crossing else ()
    options = settings.options(first)
    return Work(options, parse(options), tuple(keys), budgets, _attacks(settings, first), settings.entities)


def _all_budgets(settings: Settings) -> tuple[float, ...]:
    """Of every part: a run that serves one serves all."""
    found = {float(budget) for part in PARTS for budget in settings.part(part).get("budgets", ())}
    return tuple(sorted(found))


def _attacks(settings: Settings, key: Key) -> AttackOptions:
    if key.seed != settings.seeds[0] or (key.column, key.defence) == ("sound", "none"):
        return AttackOptions()
    if key.defence == "none":
        return undefended_attacks(settings, key.data, key.model)
    figure = settings.part("figure-defence")
    fits = key.data in figure["data"] and key.model in figure["models"]
    return defended_attacks(settings) if fits else AttackOptions()


def undefended_attacks(settings: Settings, data: str = "", model: str = "") -> AttackOptions:
    """What Table 1 asks for, of one federation or in general."""
    options = settings.part("table-attacks").get("attacks", {})
    names = [name for forms in options.get("families", {}).values() for name in forms] + list(options.get("ours", ()))
    passive = tuple(name for name in names if not name.startswith("cia"))
    return _options(
        {**options, **options.get(data, {}).get(model, {})}, passive, tuple(n for n in names if n not in passive)
    )


def defended_attacks(settings: Settings) -> AttackOptions:
    """What the figure of attacks after defence asks for."""
    options = settings.part("figure-defence").get("attacks", {})
    return _options(options, tuple(options.get("passive", ())), tuple(options.get("active", ())))


def _options(options: Table, passive: tuple[str, ...], active: tuple[str, ...]) -> AttackOptions:
    """What is not said is as in `AttackOptions`."""
    usual = AttackOptions()
    return AttackOptions(
        passive,
        active,
        tuple(options.get("last-round-only", usual.last_round_only)),
        tuple(options.get("designs", usual.designs)),
        options.get("every", usual.every),
        options.get("cia-every", usual.cia_every),
        options.get("cia-group-size", usual.group_size),
        options.get("cia-waiting-rounds", usual.waiting_rounds),
    )
