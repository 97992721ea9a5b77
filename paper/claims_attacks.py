"""What the paper says about its attacks, decided by Table 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from paper.claims import Facts, Finding, Rule, Vote, judged, untested
from paper.names import BILINEAR, DISTANCE, FAMILIES, data_name, listed, model_name, short
from paper.points import FLOOR, LOW_FPR, OURS, Point
from paper.table_attacks import AttackRow

CHANCE = 0.5
CLOSE = 0.02
"""F1 that differ by less are called the same: about the standard error with 1,000 targets."""
GOOD, CLEAR = 0.75, 0.05
TABLE = "table-attacks"
BACKWARDS = "An AUC far below .5 has members on the side that the printed rule calls non-members."
THREE = ("si", "cip", "cia")


def _place(row: AttackRow) -> str:
    return f"{model_name(row.model)} on {data_name(row.data)}"


def _rows(facts: Facts, family: str, models: tuple[str, ...] = DISTANCE + BILINEAR) -> list[AttackRow]:
    return [row for row in facts.attacks.rows if row.family == family and row.model in models]


def _above_chance(point: Point) -> bool:
    return point.auc.low > CHANCE


def _auc(point: Point) -> str:
    return f"AUC {short(point.auc.value)} [{short(point.auc.low)}, {short(point.auc.high)}]"


def successful(facts: Facts) -> Finding:
    """Each of the three attacks tells members apart somewhere, after the last round."""
    votes = []
    for family in THREE:
        points = [(row.last, row) for row in _rows(facts, family) if row.last]
        if not points:
            votes.append(Vote(None, FAMILIES[family]))
            continue
        point, row = max(points, key=lambda pair: pair[0].auc.value)
        votes.append(Vote(_above_chance(point), f"{FAMILIES[family]} {_auc(point)} ({_place(row)})"))
    return judged(votes, "attacks", note="Strongest form, last round, canaries against canaries that were left out.")


def substantial(facts: Facts) -> Finding:
    """Every undefended federation gives members away at few false alarms."""
    votes = []
    for data, model in dict.fromkeys((row.data, row.model) for row in facts.attacks.rows):
        points = [row.last for row in facts.attacks.rows if (row.data, row.model) == (data, model) and row.last]
        place = f"{model_name(model)} on {data_name(data)}"
        if not points:
            votes.append(Vote(None, place, data_name(data)))
            continue
        point = max(points, key=lambda one: (_low_rate(one) or 0.0, one.auc.value))
        low = _low_rate(point)
        said = _auc(point) if low is None else f"TPR {short(point.tpr.value if point.tpr else None)} at 1 % FPR"
        risky = _above_chance(point) if low is None else low > LOW_FPR
        votes.append(Vote(risky, f"{place} {said} ({point.attack})", data_name(data)))
    return judged(votes, "federations", note="The strongest attack of each, ours included.")


def _low_rate(point: Point) -> float | None:
    return point.tpr.low if point.tpr else None


def membership(facts: Facts) -> Finding:
    """The strict game: real training triples against real triples that were held out."""
    votes = [
        vote
        for family in ("si", "cip")
        for vote in _on_points(facts, family, "strict", lambda point: (_above_chance(point), _auc(point)))
    ]
    note = "Here members are real triples and non-members held-out real ones (design B), which is harder than canaries."
    return judged(votes, "attacks", share=0.5, note=note)


def _on_points(
    facts: Facts,
    family: str,
    which: Literal["printed", "best", "last", "strict"],
    decide: Callable[[Point], tuple[bool, str]],
    models: tuple[str, ...] = DISTANCE + BILINEAR,
) -> list[Vote]:
    """A vote for every federation that the attack fits; one that has not been run has none yet."""
    votes = []
    for row in _rows(facts, family, models):
        point: Point | None = getattr(row, which)
        if point:
            agrees, numbers = decide(point)
            votes.append(Vote(agrees, f"{FAMILIES[family]}, {_place(row)}: {numbers}", data_name(row.data)))
        elif not row.measured and (family != "si" or row.model in DISTANCE):
            votes.append(Vote(None, _place(row), data_name(row.data)))
    return votes


def printed_numbers(facts: Facts) -> Finding:
    """Table 1 is reached or passed by some form of the attack."""
    votes = []
    for row in facts.attacks.rows:
        if row.paper is None:
            continue
        reached = row.best.best_f1 >= row.paper - CLOSE if row.best else None
        ours = short(row.best.best_f1) if row.best else ""
        said = f"{FAMILIES[row.family]}, {_place(row)}: {ours} (paper {short(row.paper)})"
        votes.append(Vote(reached, said, data_name(row.data)))
    return judged(votes, "cells of Table 1", note="Reached means at most .02 below; best form and round.")


def passive_around(facts: Facts) -> Finding:
    """CIP has an F1 of about .8 on all four models."""
    votes = _on_points(facts, "cip", "best", lambda point: (point.best_f1 >= GOOD, short(point.best_f1)))
    return judged(votes, "federations", note="About .8 is read as at least .75; guessing gives .667.")


def _active_against_passive(facts: Facts, models: tuple[str, ...], better: bool) -> list[Vote]:
    votes = []
    for row in _rows(facts, "cia", models):
        other = facts.attacks.row(row.data, row.model, "cip")
        agrees, said = None, _place(row)
        if row.best and other and other.best:
            agrees = (row.best.best_f1 > other.best.best_f1) == better
            said += f": CIA {short(row.best.best_f1)}, CIP {short(other.best.best_f1)}"
        votes.append(Vote(agrees, said, data_name(row.data)))
    return votes


def active_distance(facts: Facts) -> Finding:
    """CIA is usually ahead of CIP on distance models."""
    note = "Best form and round of each; in the paper CIP is ahead on RotatE with NELL-995 itself."
    return judged(_active_against_passive(facts, DISTANCE, True), "federations", share=0.51, note=note)


def active_bilinear(facts: Facts) -> Finding:
    """CIA is behind CIP on bilinear models."""
    note = "In the paper's own table CIA is ahead for ComplEx on FB15k-237 (.795 against .775)."
    return judged(_active_against_passive(facts, BILINEAR, False), "federations", note=note)


def insensitive(facts: Facts) -> Finding:
    """Nothing is seen by CIA on bilinear models."""
    votes = _on_points(facts, "cia", "last", lambda point: (not _above_chance(point), _auc(point)), BILINEAR)
    note = "Not to react would be an AUC of .5; the tail is scaled, as the authors' code does for these models."
    return judged(votes, "federations", note=note)


def server_only_distance(facts: Facts) -> Finding:
    """SI works on distance models and on no other."""
    works = _on_points(facts, "si", "last", lambda point: (_above_chance(point), _auc(point)), DISTANCE)
    fails = _on_points(facts, "si", "last", lambda point: (not _above_chance(point), _auc(point)), BILINEAR)
    found = judged(works + fails, "federations")
    if fails or found.answer != "holds":
        return found
    server = [(row, row.last) for row in _rows(facts, OURS, BILINEAR) if row.last]
    said = listed([f"{_place(row)} {_auc(point)} ({point.attack})" for row, point in server[:2]])
    beside = f" A server with the same auxiliary triples succeeds there by other means: {said}." if server else ""
    return untested(
        f"It works on distance models ({works[0].numbers}); on bilinear ones SI is not defined here (t - h means no "
        f"relation) and is not played.{beside}",
        "SI works on distance models and is not defined for others",
    )


def _printed_form(family: str, facts: Facts, note: str) -> Finding:
    """Works if it is clearly ahead of calling every target a member, in at least half of the federations."""

    def decide(point: Point) -> tuple[bool, str]:
        works = _above_chance(point) and point.best_f1 >= FLOOR + CLEAR
        return works, f"F1 {short(point.best_f1)}, {_auc(point)}"

    votes = _on_points(facts, family, "printed", decide)
    return judged(votes, "federations", share=0.5, note=f"To work is read as an F1 of .717 or more. {note}".strip())


def clusters(facts: Facts) -> Finding:
    """SI as printed, by clusters of all pairs."""
    return _printed_form("si", facts, "The form with centres from auxiliary triples is another attack, and works.")


def score_ratio(facts: Facts) -> Finding:
    """CIP as printed, by the ratio of two scores."""
    note = "The ratio changes its sign as scores do, and turns round during training."
    return _printed_form("cip", facts, f"{note} {BACKWARDS}")


def reversal_ratio(facts: Facts) -> Finding:
    """CIA as printed, by the ratio of two scores."""
    return _printed_form("cia", facts, BACKWARDS)


ATTACKS = (
    Rule(
        "attacks-succeed",
        "Abstract",
        "three attacks find out which triples a victim holds",
        TABLE,
        successful,
    ),
    Rule(
        "substantial-risk",
        "Section 1",
        "an undefended federation gives a lot away",
        TABLE,
        substantial,
    ),
    Rule(
        "membership",
        "Section 3.1",
        "the attacks decide whether one given triple was trained on",
        TABLE,
        membership,
    ),
    Rule(
        "si-clusters",
        "Section 3.2",
        "SI: pairs that share a real relation lie close together, so clusters show which relations exist",
        TABLE,
        clusters,
    ),
    Rule(
        "cip-ratio", "Section 3.3", "CIP: the ratio of two scores, with a threshold, tells members", TABLE, score_ratio
    ),
    Rule(
        "cia-ratio",
        "Section 3.4",
        "CIA: after its tail is reversed a member's score comes back, and a threshold on the ratio sees that",
        TABLE,
        reversal_ratio,
    ),
    Rule("table-1", "Section 5.2", "every F1 that Table 1 prints", TABLE, printed_numbers),
    Rule(
        "cip-around-08",
        "Section 5.2",
        "CIP reaches an F1 of about .8 whatever the model",
        TABLE,
        passive_around,
    ),
    Rule(
        "cia-beats-cip",
        "Section 5.2",
        "for TransE and RotatE CIA is mostly stronger than CIP",
        TABLE,
        active_distance,
    ),
    Rule(
        "cia-behind-cip",
        "Section 5.2",
        "for DistMult and ComplEx CIA is weaker than CIP",
        TABLE,
        active_bilinear,
    ),
    Rule(
        "cia-insensitive",
        "Section 5.2",
        "DistMult and ComplEx hardly react when a tail is reversed",
        TABLE,
        insensitive,
    ),
    Rule(
        "si-only-distance",
        "Section 5.2",
        "SI works on distance models alone (TransE, RotatE)",
        TABLE,
        server_only_distance,
    ),
)
