"""Table 2 of the paper: how well the four models rank without and with a defence, at epsilon 16 and 32."""

from __future__ import annotations

from dataclasses import dataclass

from paper.cells import Cell, Column, Key
from paper.points import Cells, file_of
from paper.settings import Settings
from paper.worth import Control, Ranked, Sides, controls_of, ranked, sides

PART = "table-utility"
UNDEFENDED, OURS = "none", "recommended"


@dataclass(frozen=True, slots=True)
class PublishedUtility:
    """As the paper measures: tails alone. `ranked` is None where the budget does not cover one round."""

    ranked: Ranked | None
    round: int
    rounds: int
    exhausted: bool
    spent: float | None
    spent_all_orders: float | None
    tests_made: int
    tests_passed: int
    file: str


@dataclass(frozen=True, slots=True)
class SoundUtility:
    """Both sides, over seeds; `spent` is the largest epsilon of any client, None without a guarantee."""

    sides: Sides | None
    round: int
    rounds: int
    spent: float | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UtilityRow:
    """One setting of one model; a column that does not have the setting is `absent`, a missing cell None."""

    data: str
    model: str
    defence: str
    epsilon: float
    paper: Ranked | None
    published: PublishedUtility | None
    sound: SoundUtility | None
    absent: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """Whether a number of the paper is reached, ranked as the paper does; popularity likewise, beside it."""

    data: str
    model: str
    defended: bool
    paper: float
    paper_setting: str
    ours: float | None
    ours_setting: str
    popularity: float | None
    private_popularity: float | None


@dataclass(frozen=True, slots=True)
class UtilityTable:
    """All settings, the controls of each data set, and what is reached of the paper's best numbers."""

    rows: tuple[UtilityRow, ...]
    controls: tuple[Control, ...]
    reached: tuple[Reached, ...]

    def row(self, data: str, model: str, defence: str, epsilon: float) -> UtilityRow | None:
        """One row by name."""
        wanted = (data, model, defence, epsilon)
        return next((row for row in self.rows if (row.data, row.model, row.defence, row.epsilon) == wanted), None)


def utility_table(settings: Settings, cells: Cells) -> UtilityTable:
    """Every row that the settings ask for, measured or not.

    >>> from paper.settings import default_folder
    >>> len(utility_table(Settings(default_folder()), {}).rows)
    104
    """
    part = settings.part(PART)
    places = [(UNDEFENDED, 0.0)] + [
        (str(name), float(budget))
        for budget in part.get("budgets", ())
        for name in dict.fromkeys((*part.get("published", ()), *part.get("sound", ())))
        if name != UNDEFENDED
    ]
    pairs = [(data, model) for data in part["data"] for model in part["models"]]
    rows = tuple(_row(*pair, name, budget, settings, cells) for pair in pairs for name, budget in places)
    controls = tuple(control for data in part["data"] for control in controls_of(data, cells))
    reached = tuple(
        one
        for data, model in pairs
        for defended in (False, True)
        if (one := _reached([row for row in rows if (row.data, row.model) == (data, model)], controls, defended))
    )
    return UtilityTable(rows, controls, reached)


def _row(data: str, model: str, defence: str, epsilon: float, settings: Settings, cells: Cells) -> UtilityRow:
    part = settings.part(PART)
    columns: tuple[Column, Column] = ("published", "sound")
    absent = tuple(column for column in columns if defence not in part.get(column, (UNDEFENDED,)))
    first = cells.get(Key(data, model, "published", defence, epsilon, settings.seeds[0]))
    several = [cells.get(Key(data, model, "sound", defence, epsilon, seed)) for seed in settings.seeds]
    name = defence if defence == UNDEFENDED else f"{defence}-{epsilon:g}"
    printed = part.get("paper", {}).get(data, {}).get(name, {}).get(model)
    return UtilityRow(
        data,
        model,
        defence,
        epsilon,
        Ranked(*printed) if printed else None,
        _published(first) if first else None,
        _sound([cell for cell in several if cell]),
        absent,
    )


def _published(cell: Cell) -> PublishedUtility:
    return PublishedUtility(
        ranked(cell.utility),
        cell.round,
        cell.rounds,
        cell.exhausted,
        cell.spent.get("published"),
        cell.spent.get("published, all orders"),
        cell.tests.get("made", 0),
        cell.tests.get("passed", 0),
        file_of(cell.key),
    )


def _sound(several: list[Cell]) -> SoundUtility | None:
    if not several:
        return None
    spent = [value for cell in several if (value := cell.spent.get("sound")) is not None]
    return SoundUtility(
        sides([cell.utility for cell in several]),
        several[0].round,
        several[0].rounds,
        max(spent, default=None),
        tuple(file_of(cell.key) for cell in several),
    )


def _reached(rows: list[UtilityRow], controls: tuple[Control, ...], defended: bool) -> Reached | None:
    """Undefended: against the better of our columns. Defended: the paper's best at the least budget, against ours."""
    least = min((row.epsilon for row in rows if row.epsilon), default=0.0)
    level = [row for row in rows if row.epsilon == (least if defended else 0.0)]
    printed = max((row for row in level if row.paper), key=_paper_mrr, default=None)
    if printed is None:
        return None
    measured = [pair for row in level if row.defence in (UNDEFENDED, OURS) for pair in _tail_mrrs(row, defended)]
    ours, setting = max(measured, default=(None, ""))
    exact, noisy = (
        control.published.mrr if control.published else (control.sound.seen_tail.value if control.sound else None)
        for control in controls
        if control.data == printed.data
    )
    where = f"{printed.defence}, epsilon {printed.epsilon:g}" if defended else printed.defence
    return Reached(printed.data, printed.model, defended, _paper_mrr(printed), where, ours, setting, exact, noisy)


def _paper_mrr(row: UtilityRow) -> float:
    return row.paper.mrr if row.paper else -1.0


def _tail_mrrs(row: UtilityRow, defended: bool) -> list[tuple[float, str]]:
    """Ranked as in the paper; of defended rows only what has a guarantee."""
    found = []
    if not defended and row.published and row.published.ranked:
        found.append((row.published.ranked.mrr, "as published"))
    if row.sound and row.sound.sides and (not defended or row.sound.spent is not None):
        name = f"{row.defence}, sound epsilon {row.epsilon:g}" if defended else "sound"
        found.append((row.sound.sides.seen_tail.value, name))
    return found
