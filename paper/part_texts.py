"""The short text around each part: what came out, what was chosen. The words are in texts/*.md, the numbers here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fedkge.configuration import Configuration
from paper.cells import Key
from paper.claims import Claim
from paper.names import FAMILIES, data_name, listed, model_name, short
from paper.plan import defended_attacks, undefended_attacks
from paper.points import CLOSE, FLOOR, OURS
from paper.rules import Facts
from paper.settings import Settings
from paper.table_attacks import AttackRow
from paper.table_utility import Reached
from paper.worth import POPULARITY, PRIVATE_POPULARITY

if TYPE_CHECKING:
    from jinja2 import Environment

Numbers: TypeAlias = dict[str, Any]
RECOMMENDED = "recommended"
"""The defence that trains on a copy."""
PAPERS = {"dpsgd": "the baseline", "dp-flames": "DP-FLames"}


@dataclass(frozen=True, slots=True)
class PartText:
    """What stands around a table or figure."""

    part: str
    title: str
    there: int
    wanted: int
    summary: tuple[str, ...]
    holds: tuple[Claim, ...]
    fails: tuple[Claim, ...]
    untested: tuple[Claim, ...]
    pending: tuple[Claim, ...]
    choices: tuple[str, ...]


def part_text(
    part: str, there: int, wanted: int, settings: Settings, facts: Facts, claims: tuple[Claim, ...]
) -> PartText:
    """The text of one part; its claims are sorted by answer."""
    own = [claim for claim in claims if claim.part == part]
    kinds = ("holds", "does not hold", "cannot be tested", "not run yet")
    holds, fails, untested, pending = (tuple(claim for claim in own if claim.answer == kind) for kind in kinds)
    written = _environment().get_template(f"{part}.md").render(NUMBERS[part](settings, facts))
    title, summary, choices = (_paragraphs(section) for section in written.split("\n## "))
    said = summary[1:] if there else ()  # each section begins with its heading
    return PartText(
        part, title[0].removeprefix("# "), there, wanted, said, holds, fails, untested, pending, choices[1:]
    )


def _paragraphs(text: str) -> tuple[str, ...]:
    r"""What blank lines separate, each on one line and without its bullet; nothing where it is empty.

    >>> _paragraphs("- one\ntwo\n\n\n\nthree")
    ('one two', 'three')
    """
    found = (" ".join(part.split()).removeprefix("- ") for part in text.split("\n\n"))
    return tuple(part for part in found if part)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (heavy)

    loader = FileSystemLoader(Path(__file__).parent / "texts")
    made = Environment(loader=loader, undefined=StrictUndefined, autoescape=False)  # noqa: S701 (plain text)
    made.filters.update(short=short, listed=listed, model=model_name, counted=counted)
    return made


def counted(number: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(20, "round")
    ('1 round', '20 rounds')
    """
    return f"{number} {word}{'s' if number != 1 else ''}"


def _federation(settings: Settings, defence: str, model: str = "") -> Configuration | None:
    """An as-published federation of the first data set; None where the settings do not have this defence."""
    table = settings.part("table-utility")
    if defence not in settings.federations.get("published", {}):
        return None
    place = (table["data"][0], model or table["models"][0])
    return settings.configuration(Key(*place, "published", defence, 0.0, settings.seeds[0]))


def _length(one: Configuration) -> str:
    return f"{counted(one.training.rounds, 'round')} of {counted(one.training.local_epochs, 'epoch')}"


def _place(row: AttackRow | Reached) -> str:
    return f"{model_name(row.model)} with {data_name(row.data)}"


def _attacks(settings: Settings, facts: Facts) -> Numbers:
    rows = [row for row in facts.attacks.rows if row.family != OURS]
    measured = [(row, row.best.best_f1, row.paper) for row in rows if row.best and row.paper is not None]
    below = [(row, f1 - paper) for row, f1, paper in measured if f1 < paper - CLOSE]
    table, before = settings.part("table-attacks"), undefended_attacks(settings)
    lengths: dict[str, list[str]] = {}
    for model in table["models"]:
        if one := _federation(settings, "none", model):
            lengths.setdefault(_length(one), []).append(model_name(model))
    places = [(data, model) for data in table["data"] for model in table["models"]]
    every = {place: undefended_attacks(settings, *place).cia_every for place in places}
    return {
        "measured": len(measured),
        "reached": len(measured) - len(below),
        "below": [f"{FAMILIES[row.family]} on {_place(row)} ({short(gap)})" for row, gap in below],
        "weak_clients": any(row.family != "si" for row, _ in below),
        "printed": [row.printed.best_f1 for row in rows if row.printed and row.family in ("si", "cip")],
        "floor": FLOOR,
        "undefended": _federation(settings, "none"),
        "lengths": [text + (f" ({listed(who)})" if len(lengths) > 1 else "") for text, who in lengths.items()],
        "before": before,
        "oftener": [
            f"every {number} with {model_name(model)} on {data_name(data)}"
            for (data, model), number in every.items()
            if number != before.cia_every
        ],
    }


def _utility(settings: Settings, facts: Facts) -> Numbers:
    reached = {}
    for defended in (False, True):
        cells = [(one, one.ours - one.paper) for one in facts.utility.reached if one.defended == defended and one.ours]
        below = [f"{_place(one)} ({short(gap)})" for one, gap in cells if gap < 0]
        reached[defended] = {"measured": len(cells), "below": below}
    flames = _federation(settings, "dp-flames")
    trained = [(name, one) for key, name in PAPERS.items() if (one := _federation(settings, key))]
    return {
        "reached": reached,
        "above_counting": _above_counting(facts),
        "trained": [f"{_length(one)} for {name}" for name, one in trained],
        "counting": _counting(facts),
        "failure": f"{flames.option('test-failure'):.0e}".replace("e-0", "e-") if flames else "",
        "untested": _federation(settings, "dp-flames-untested") is not None,
        "seeds": len(settings.seeds),
    }


def _above_counting(facts: Facts) -> list[bool]:
    """Whether a private embedding is worth more than noisy counts, cell by cell."""
    counting = {
        one.data: one.sound.both.value for one in facts.utility.controls if one.sound and one.name == PRIVATE_POPULARITY
    }
    return [
        row.sound.sides.both.value > counting[row.data]
        for row in facts.utility.rows
        if row.epsilon and row.sound and row.sound.sides and row.sound.spent is not None and row.data in counting
    ]


def _counting(facts: Facts) -> list[str]:
    """How easy the clients' graphs are, by the one ranking that needs no model."""
    found: dict[str, list[float]] = {}
    for cell in facts.cells:
        value = cell.controls.get(POPULARITY, {}).get("seen", {}).get("tail.mrr")
        if cell.key.defence == "none" and value is not None:
            found.setdefault(cell.key.data, []).append(value)
    said = []
    for data, values in found.items():
        span = dict.fromkeys((short(min(values)), short(max(values))))
        printed = [row.paper.mrr for row in facts.utility.rows if row.data == data and row.paper and not row.epsilon]
        beside = f" (undefended models of the paper: {short(min(printed))} to {short(max(printed))})" if printed else ""
        said.append(f"{' to '.join(span)} on {data_name(data)}{beside}")
    return said


def _rounds(settings: Settings, facts: Facts) -> Numbers:
    part, highest = settings.part("figure-rounds"), dict[str, list[str]]()
    for one in facts.rounds.series:
        if not one.printed:
            top = max(range(len(one.rounds)), key=lambda place: one.best_f1[place])
            said = f"{FAMILIES[one.family]} {short(one.best_f1[top])} (round {one.rounds[top]})"
            highest.setdefault(one.model, []).append(said)
    names = {"data": [data_name(one) for one in part["data"]], "models": [model_name(one) for one in part["models"]]}
    return {"highest": highest, **names}


def _defence(settings: Settings, facts: Facts) -> Numbers:
    published = [cell for cell in facts.defence.cells if cell.column == "published"]
    sound = [point for point in facts.defence.points if point.column == "sound" and point.epsilon]
    return {
        "published": len(published),
        "unused": sum(not cell.exhausted for cell in published),
        "sound": len(sound),
        "seen": sum(point.auc.low > 0.5 for point in sound),
        "after": defended_attacks(settings),
        "copied": RECOMMENDED if RECOMMENDED in settings.part("figure-defence").get("sound", ()) else "",
        "differs": _differs(settings),
    }


def _differs(settings: Settings) -> list[str]:
    """What else than the defence differs between the dotted line and the others."""

    def epochs(one: Configuration) -> int:
        return one.training.rounds * one.training.local_epochs

    before, after, found = undefended_attacks(settings), defended_attacks(settings), []
    undefended = _federation(settings, "none")
    defended = [f"{epochs(one)} under {name}" for key, name in PAPERS.items() if (one := _federation(settings, key))]
    if undefended and defended:
        found.append(f"epochs ({epochs(undefended)} without a defence, {listed(defended)} as published)")
    if before.waiting_rounds != after.waiting_rounds:
        waited = f"{counted(before.waiting_rounds, 'round')} without a defence, {after.waiting_rounds} with one"
        found.append(f"how long CIA waits ({waited})")
    if before.group_size != after.group_size:
        found.append(f"how many targets it reverses at once ({before.group_size:,}, {after.group_size:,})")
    return found


def _tradeoff(settings: Settings, facts: Facts) -> Numbers:
    defended, beside = [point for point in facts.tradeoff.points if point.epsilon], []
    for one in facts.tradeoff.controls:
        own = [point.mrr for point in defended if (point.data, point.column) == (one.data, "sound")]
        if own and one.sound and one.name == PRIVATE_POPULARITY:
            beside.append((sum(mrr > one.sound.both.value for mrr in own), len(own)))
    budgets = len(settings.part("figure-tradeoff").get("budgets", ()))
    return {"defended": len(defended), "beside_counting": beside, "budgets": budgets}


NUMBERS: dict[str, Callable[[Settings, Facts], Numbers]] = {
    "table-attacks": _attacks,
    "table-utility": _utility,
    "figure-rounds": _rounds,
    "figure-defence": _defence,
    "figure-tradeoff": _tradeoff,
}
