"""Everything that the page of the reproduction says, as one value, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from fedkge import __version__
from paper.cells import Cell, Key
from paper.claims import ANSWERS, Claim, answers
from paper.figure_defence import DefenceFigure, defence_figure
from paper.figure_rounds import RoundsFigure, rounds_figure
from paper.figure_tradeoff import TradeoffFigure, tradeoff_figure
from paper.part_texts import PartText, part_text
from paper.plan import cells_of, wanted
from paper.rules import Facts
from paper.settings import PARTS, Settings
from paper.table_attacks import AttackTable, attack_table
from paper.table_utility import UtilityTable, utility_table

FORMAT = 1
PROGRAM = "fedkge reproduce "
MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Head:
    """What was run, with what, and how much of it is there."""

    quick: bool
    entities: int
    version: str
    versions: tuple[str, ...]
    """Of the programs that measured the cells."""
    seeds: tuple[int, ...]
    there: int
    wanted: int
    federations: int
    hours: float
    """Of computation, each federation counted once."""
    commands: tuple[str, ...]
    dates: tuple[str, ...]
    """First and last day of the cells."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The paper again: tables, figures, claims."""

    format: int
    head: Head
    attacks: AttackTable
    utility: UtilityTable
    rounds: RoundsFigure
    defence: DefenceFigure
    tradeoff: TradeoffFigure
    claims: tuple[Claim, ...]
    texts: tuple[PartText, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have which answer."""
        found = Counter(claim.answer for claim in self.claims)
        return {answer: found[answer] for answer in ANSWERS}

    def text(self, part: str) -> PartText:
        """What stands around one part."""
        return next(text for text in self.texts if text.part == part)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """As indented JSON."""
        return json.dumps(self.as_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def gather(settings: Settings, cells: Mapping[Key, Cell]) -> Reproduction:
    """Make the document of the cells that are there; missing ones are told as such.

    >>> from paper.settings import default_folder
    >>> document = gather(Settings(default_folder(), quick=True), {})
    >>> document.head.there, document.counts["not run yet"] > 10
    (0, True)
    """
    asked = wanted(settings, ["all"])
    own = {key: cells[key] for key in sorted(cells) if key in set(asked)}
    attacks, utility = attack_table(settings, own), utility_table(settings, own)
    defence = defence_figure(settings, own)
    rounds, tradeoff = rounds_figure(settings, own), tradeoff_figure(settings, own, defence)
    facts = Facts(attacks, utility, rounds, defence, tradeoff, tuple(own.values()))
    claims = answers(facts)
    texts = []
    for part in PARTS:
        keys = list(dict.fromkeys(cells_of(settings, part)))
        texts.append(part_text(part, sum(key in own for key in keys), len(keys), settings, facts, claims))
    head = _head(settings, tuple(own.values()), len(asked))
    return Reproduction(FORMAT, head, attacks, utility, rounds, defence, tradeoff, claims, tuple(texts))


def _head(settings: Settings, cells: tuple[Cell, ...], asked: int) -> Head:
    runs = {(cell.digest, cell.key.seed): sum(cell.seconds.values()) for cell in cells}
    days = sorted({cell.date[:10] for cell in cells})
    return Head(
        settings.quick,
        settings.entities,
        __version__,
        tuple(sorted({cell.version for cell in cells})),
        settings.seeds,
        len(cells),
        asked,
        len(runs),
        round(sum(runs.values()) / 3600, 2),
        tuple(sorted({brief(cell.command) for cell in cells})),
        tuple(dict.fromkeys((days[0], days[-1]))) if days else (),
    )


def brief(command: str) -> str:
    """A command that names many cells, without their names: each cell's own file has them.

    >>> brief("fedkge reproduce a b --full"), brief("fedkge reproduce a b c d e --full --workers 1")
    ('fedkge reproduce a b --full', 'fedkge reproduce (5 cells by name) --full --workers 1')
    """
    words = command.removeprefix(PROGRAM).split()
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    if not command.startswith(PROGRAM) or len(names) <= MOST_NAMES:
        return command
    return " ".join([PROGRAM.strip(), f"({len(names)} cells by name)", *words[len(names) :]])
