"""Every claim of the paper, answered: from the cells where it is a number, by a proof or by reading where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from paper.cells import Cell
from paper.figure_defence import DefenceFigure
from paper.figure_rounds import RoundsFigure
from paper.figure_tradeoff import TradeoffFigure
from paper.table_attacks import AttackTable
from paper.table_utility import UtilityTable

Answer: TypeAlias = Literal["holds", "does not hold", "cannot be tested", "not run yet"]
ANSWERS: tuple[Answer, ...] = ("holds", "does not hold", "cannot be tested", "not run yet")
SHOWN = 4
"""Numbers that a reason names; the table has the others."""


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
class Facts:
    """Everything that rules look at."""

    attacks: AttackTable
    utility: UtilityTable
    rounds: RoundsFigure
    defence: DefenceFigure
    tradeoff: TradeoffFigure
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """How a claim is decided."""

    name: str
    where: str
    says: str
    part: str
    decide: Callable[[Facts], Finding]
    evidence: str = ""

    def claim(self, facts: Facts) -> Claim:
        """The claim with its answer."""
        found = self.decide(facts)
        facts_of = (self.name, self.where, self.says, found.answer, found.reason, found.brief)
        return Claim(*facts_of, self.evidence or self.part, self.part)


@dataclass(frozen=True, slots=True)
class Vote:
    """One cell's word on a claim, with its numbers; None where it has not been run.

    Answers may be given for a group (a data set, a model) whose cells are all there while another is still running.
    """

    agrees: bool | None
    numbers: str
    group: str = ""


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


NOT_RUN = Finding("not run yet", "None of the cells that decide this has been run.", "")


def untested(reason: str, brief: str) -> Finding:
    """Nothing here can decide it."""
    return Finding("cannot be tested", reason, brief)


def answers(facts: Facts) -> tuple[Claim, ...]:
    """All claims, in the order of the paper."""
    from paper.claims_attacks import ATTACKS  # noqa: PLC0415 (they need Rule from here)
    from paper.claims_defence import DEFENCE  # noqa: PLC0415
    from paper.claims_rounds import ROUNDS  # noqa: PLC0415
    from paper.claims_tradeoff import TRADEOFFS  # noqa: PLC0415
    from paper.claims_utility import UTILITY  # noqa: PLC0415
    from paper.claims_written import WRITTEN  # noqa: PLC0415

    claims = [rule.claim(facts) for rule in (*ATTACKS, *ROUNDS, *DEFENCE, *TRADEOFFS, *UTILITY)] + list(WRITTEN)
    return tuple(sorted(claims, key=_place))


PLACES = ("Abstract", "Section", "Appendix")


def _place(claim: Claim) -> tuple[int, str]:
    """Where in the paper; within a section the order of the rules stays."""
    kind, _, number = claim.where.partition(" ")
    return PLACES.index(kind), number
