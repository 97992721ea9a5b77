"""The short text around each part: what came out, in numbers, and which claims that decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paper.choices import choices
from paper.claims import Claim
from paper.names import FAMILIES, data_name, listed, model_name, short
from paper.points import CLOSE, FLOOR, OURS
from paper.rules import Facts
from paper.settings import Settings
from paper.table_attacks import AttackRow
from paper.table_utility import Reached
from paper.worth import PRIVATE_POPULARITY

TITLES = {
    "table-attacks": "Table 1: F1 of the attacks",
    "table-utility": "Table 2: model utility",
    "figure-rounds": "Figure: the attacks round by round, and their ROC curves",
    "figure-defence": "Figure: the attacks after defence",
    "figure-tradeoff": "Figure: utility against defence",
}


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
    summary = SUMMARIES[part](facts) if there else ()
    return PartText(
        part, TITLES[part], there, wanted, summary, holds, fails, untested, pending, choices(part, settings, facts)
    )


def _attacks(facts: Facts) -> tuple[str, ...]:
    rows = [row for row in facts.attacks.rows if row.family != OURS]
    measured = [(row, row.best.best_f1, row.paper) for row in rows if row.best and row.paper is not None]
    short_of = [(row, f1 - paper) for row, f1, paper in measured if f1 < paper - CLOSE]
    said = [
        f"{len(measured) - len(short_of)} of {len(measured)} measured cells reach the printed F1 (to .02) with some "
        "form of the attack, at its best round."
    ]
    if short_of:
        places = [f"{FAMILIES[row.family]} on {_place(row)} ({short(gap)})" for row, gap in short_of]
        said.append(f"Below the paper: {listed(places)}.")
    if any(row.family != "si" for row, _ in short_of):
        said.append(
            "A client knows only its own relation rows, which nobody averages, and where they are far from the "
            "victim's, CIP and CIA see little: benchmarks/README.md has the measurement."
        )
    own = [row.printed.best_f1 for row in rows if row.printed and row.family in ("si", "cip")]
    if own:
        said.append(
            f"The formulas of SI and CIP as the paper writes them reach {short(max(own))} at most; calling every "
            f"target a member gives {short(FLOOR)}."
        )
    return tuple(said)


def _place(row: AttackRow | Reached) -> str:
    return f"{model_name(row.model)} with {data_name(row.data)}"


def _utility(facts: Facts) -> tuple[str, ...]:
    said = []
    for defended, text in ((False, "Undefended training"), (True, "At the smaller budget the recommended defence")):
        measured = [
            (one, one.ours - one.paper) for one in facts.utility.reached if one.defended == defended and one.ours
        ]
        below = [f"{_place(one)} ({short(gap)})" for one, gap in measured if gap < 0]
        if measured:
            what = "best defended MRR" if defended else "MRR"
            where = f"in {len(measured) - len(below)} of {len(measured)} cells"
            missed = f"; below it: {listed(below)}" if below else ""
            said.append(f"{text} reaches the paper's {what}, tails ranked as there, {where}{missed}.")
    worth = _above_counting(facts)
    return (*said, *([worth] if worth else []))


def _above_counting(facts: Facts) -> str:
    """Whether a private embedding is worth more than noisy counts."""
    counting = {
        one.data: one.sound.both.value for one in facts.utility.controls if one.sound and one.name == PRIVATE_POPULARITY
    }
    values = [
        row.sound.sides.both.value > counting[row.data]
        for row in facts.utility.rows
        if row.epsilon and row.sound and row.sound.sides and row.sound.spent is not None and row.data in counting
    ]
    if not values:
        return ""
    return f"{sum(values)} of {len(values)} private cells rank better, on both sides, than counting with noise for ε 1."


def _rounds(facts: Facts) -> tuple[str, ...]:
    best: dict[str, list[str]] = {}
    for one in facts.rounds.series:
        if not one.printed:
            top = max(range(len(one.rounds)), key=lambda place: one.best_f1[place])
            said = f"{FAMILIES[one.family]} {short(one.best_f1[top])} (round {one.rounds[top]})"
            best.setdefault(one.model, []).append(said)
    return tuple(f"{model_name(model)}: highest F1: {', '.join(said)}." for model, said in best.items())


def _defence(facts: Facts) -> tuple[str, ...]:
    spans = [cell for cell in facts.defence.cells if cell.column == "published"]
    unused = sum(not cell.exhausted for cell in spans)
    said = []
    if spans:
        said.append(
            f"As published, {unused} of {len(spans)} points never use their budget up: they show the last round, and "
            "the curves are flat there."
        )
    sound = [point for point in facts.defence.points if point.column == "sound" and point.epsilon]
    if sound:
        seen = [point for point in sound if point.auc.low > 0.5]
        said.append(
            f"With a sound epsilon, {len(seen)} of {len(sound)} attacks have an AUC whose 95 % interval lies above .5."
        )
    return tuple(said)


def _tradeoff(facts: Facts) -> tuple[str, ...]:
    defended = [point for point in facts.tradeoff.points if point.epsilon]
    said = (
        [f"{len(defended)} defended points; further right ranks better, further up takes more from the attacks."]
        if defended
        else []
    )
    for one in facts.tradeoff.controls:
        own = [point for point in defended if (point.data, point.column) == (one.data, "sound")]
        if own and one.sound and one.name == PRIVATE_POPULARITY:
            right = sum(point.mrr > one.sound.both.value for point in own)
            said.append(f"{right} of {len(own)} sound points lie right of counting with noise for ε 1.")
    return tuple(said)


SUMMARIES: dict[str, Callable[[Facts], tuple[str, ...]]] = {
    "table-attacks": _attacks,
    "table-utility": _utility,
    "figure-rounds": _rounds,
    "figure-defence": _defence,
    "figure-tradeoff": _tradeoff,
}
