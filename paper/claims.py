"""Every claim of the paper, answered: from the cells where it is a number, by a proof or by reading where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from fedkge.base.registry import look_up
from paper.names import short
from paper.points import FLOOR
from paper.quantities_attacks import ATTACKS
from paper.quantities_defence import DEFENCE
from paper.quantities_utility import UTILITY
from paper.rules import Answer, Facts, Measured, Measurement, Text, read_claims

ANSWERS: tuple[Answer, ...] = get_args(Answer)
QUANTITIES: dict[str, Callable[[Facts, Measured], Measurement]] = {**ATTACKS, **DEFENCE, **UTILITY}
"""By the name that claims.toml has for it."""
SHOWN = 4
"""Numbers that a reason names; the table has the others."""
PLACES = ("Abstract", "Section", "Appendix")


@dataclass(frozen=True, slots=True)
class Finding:
    """An answer and why, in a sentence or two; `brief` is the reason in a few words."""

    answer: Answer
    reason: str
    brief: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, where, what came out, and where that can be checked: a part's name or a file."""

    name: str
    where: str
    says: str
    answer: Answer
    reason: str
    brief: str
    evidence: str
    part: str
    """The table or figure that it is about; empty where it is about none."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One cell's word on a claim, with its numbers; None where it has not been run.

    Answers may be given for a group (a data set, a model) whose cells are all there while another is still running.
    """

    agrees: bool | None
    numbers: str
    group: str = ""


NOT_RUN = Finding("not run yet", "None of the cells that decide this has been run.", "")


def judged(votes: Sequence[Vote], unit: str, *, share: float = 1.0, note: str = "") -> Finding:
    """Holds if at least this share of the votes agree ("usually", "almost all").

    Groups that are not complete are left out as long as one is. Where none is, the answer is given only if what is
    missing cannot change it.

    >>> judged([Vote(True, "TransE .9"), Vote(False, "RotatE .6")], "federations", share=0.5).answer
    'holds'
    >>> judged([Vote(True, "TransE .9"), Vote(None, "RotatE")], "federations").answer
    'not run yet'
    >>> judged([Vote(False, "TransE .6"), Vote(None, "RotatE")], "federations").answer
    'does not hold'
    """
    there = [vote for vote in votes if vote.agrees is not None]
    if not there:
        return NOT_RUN
    waiting = {vote.group for vote in votes if vote.agrees is None}
    complete = [vote for vote in there if vote.group not in waiting]
    counted, missing = (complete, 0) if complete else (there, len(votes) - len(there))
    agreeing = [vote for vote in counted if vote.agrees]
    against = [vote for vote in counted if not vote.agrees]
    needed = share * (len(counted) + missing)
    answer: Answer = "not run yet"
    if len(agreeing) >= needed:
        answer = "holds"
    elif len(agreeing) + missing < needed:
        answer = "does not hold"
    shown = agreeing + against if answer == "holds" else against + agreeing
    more = f" (and {len(counted) - SHOWN} more)" if len(counted) > SHOWN else ""
    numbers = "; ".join(vote.numbers for vote in shown[:SHOWN])
    so_far = f"{len(agreeing)} of {len(counted)} {unit}" + (f", {missing} not run" if missing else "")
    left_out = f" Not complete, and left out: {', '.join(sorted(waiting))}." if complete and waiting else ""
    where = f"so far {so_far}" if missing else so_far
    reason = f"{where[0].upper()}{where[1:]}: {numbers}{more}. {note}".strip() + left_out
    return Finding(answer, reason, where)


def decide(rule: Measured, found: Measurement) -> Finding:
    """The answer to a claim by what was measured."""
    votes = [
        Vote(None if place.own is None else rule.expected.agrees(place.own, place.other), place.words, place.group)
        for place in found.places
    ]
    if found.cause:
        return _told("cannot be tested", rule.untested[found.cause], found)
    if rule.reason:
        there = [vote.agrees for vote in votes if vote.agrees is not None]
        if not there:
            return NOT_RUN
        answer: Answer = "not run yet" if len(there) < len(votes) else "holds" if all(there) else "does not hold"
        return _told(answer, Text(rule.reason, rule.brief), found)
    if rule.leave_out_guessing:
        compared = [vote for vote, place in zip(votes, found.places, strict=True) if not place.guessing]
        return _without_guessing(compared, len(votes) - len(compared), rule)
    beside = rule.beside.format_map(found.words) if rule.beside and found.words else ""
    return judged(votes, rule.unit, share=rule.share, note=f"{rule.note} {beside}".strip())


def _told(answer: Answer, text: Text, found: Measurement) -> Finding:
    return Finding(answer, text.reason.format_map(found.words), text.brief.format_map(found.words))


def _without_guessing(votes: list[Vote], level: int, rule: Measured) -> Finding:
    """Which of two defences is better; where attacks only guess against both there is nothing to compare."""
    left_out = f"{level} places are left out: there the attacks only guess ({short(FLOOR)}) against either defence."
    if not level or any(vote.agrees is not None for vote in votes):
        return judged(votes, rule.unit, share=rule.share, note=left_out if level else "")
    reason = (
        f"{'So far' if votes else 'In'} all {level} places the attacks only guess ({short(FLOOR)}) against either "
        "defence, so that neither is seen to be better."
    )
    brief = f"{'so far ' if votes else ''}the attacks only guess against either"
    return Finding("not run yet" if votes else "cannot be tested", reason, brief)


def answers(facts: Facts) -> tuple[Claim, ...]:
    """All claims, in the order of the paper."""
    found = []
    for rule in read_claims().measured:
        finding = decide(rule, look_up(QUANTITIES, rule.quantity, "quantity")(facts, rule))
        about = (rule.name, rule.where, rule.says, finding.answer, finding.reason, finding.brief)
        found.append(Claim(*about, evidence=rule.part, part=rule.part))
    for one in read_claims().written:
        found.append(Claim(one.name, one.where, one.says, one.answer, one.reason, "", one.evidence, ""))
    return tuple(sorted(found, key=_place))


def _place(claim: Claim) -> tuple[int, str]:
    """Where in the paper; within a section the order of the file stays."""
    kind, _, number = claim.where.partition(" ")
    return PLACES.index(kind), number
