"""What each figure shows, in words: its title, its alternative text and how to read it."""

from __future__ import annotations

from collections.abc import Sequence

from fedkge.base.numbers import at_least, epsilon, percent, share
from fedkge.report.document import (
    Attacks,
    AttackSeries,
    Audit,
    Claim,
    Curve,
    DesignFacts,
    FigureText,
    Spending,
    Utility,
)
from fedkge.report.wording import IN_OWNERS_COPY

GRID = 1e-9


def figure_texts(
    attacks: Attacks, claim: Claim, audit: Audit, spending: Sequence[Spending], utility: Utility
) -> tuple[FigureText, ...]:
    """The texts of exactly those figures for which there are numbers, in the order of the page."""
    texts = []
    for design in attacks.designs:
        curves = [curve for curve in attacks.curves if curve.design == design.design]
        if curves:
            texts.append(_roc(design, curves, claim))
    for design in attacks.designs:
        series = [one for one in attacks.by_round if one.design == design.design and len(one.rounds) > 1]
        if series:
            texts.append(_auc_by_round(design, series))
    if spending:
        texts.append(_epsilon_by_round(spending[0], claim, audit))
    if utility.rows:
        texts.append(_utility(utility))
    return tuple(texts)


def tpr_at(curve: Curve, fpr: float) -> float:
    """The highest true-positive rate on a curve at a false-positive rate of at most `fpr`.

    >>> tpr_at(Curve("a", "server", "C", 1, (0.0, 0.1, 1.0), (0.2, 0.5, 1.0)), 0.1)
    0.5
    """
    return max((true for false, true in zip(curve.fpr, curve.tpr, strict=True) if false <= fpr + GRID), default=0.0)


def _roc(design: DesignFacts, curves: Sequence[Curve], claim: Claim) -> FigureText:
    shown = max(0.01, design.smallest_fpr)
    best = max(curves, key=lambda curve: tpr_at(curve, shown))
    alt = (
        f"ROC curves of {len(curves)} attacks on design {design.design}, both axes logarithmic. At a false-positive "
        f"rate of {percent(shown)}, the highest curve, {best.attack}, finds {percent(tpr_at(best, shown))} of the "
        "members."
    )
    limit = (
        f"The dashed line is the highest curve that epsilon {epsilon(claim.epsilon)} allows. A curve clearly above it "
        "contradicts the claim."
        if claim.epsilon is not None
        else "There is no dashed limit, because no promise was made."
    )
    caption = (
        "The share of members that an attacker finds (up) against the share of non-members it wrongly accuses (right). "
        f"The dotted diagonal is guessing. Higher is worse for the data owner. {limit} The grey area has "
        f"false-positive rates below {percent(design.smallest_fpr)}: {design.non_members:,} non-members are too few."
    )
    return FigureText(f"roc-{design.design}", f"ROC on design {design.design}", alt, caption)


def _auc_by_round(design: DesignFacts, series: Sequence[AttackSeries]) -> FigureText:
    best = max(series, key=lambda one: one.auc[-1].value)
    alt = (
        f"AUC by round of {len(series)} attacks on design {design.design}. The strongest, {best.attack}, goes from "
        f"{share(best.auc[0].value)} in round {best.rounds[0]} to {share(best.auc[-1].value)} in round "
        f"{best.rounds[-1]}."
    )
    caption = "AUC after each attacked round, with the interval of the strongest attack. The dotted line is guessing."
    return FigureText(f"auc-{design.design}", f"Attacks on design {design.design} by round", alt, caption)


def _epsilon_by_round(spending: Spending, claim: Claim, audit: Audit) -> FigureText:
    shown = ""
    if audit.largest is not None:
        shown = f" The audit shows at least {at_least(audit.largest.epsilon)}."
    budget = "" if claim.promised is None else f" The budget is {epsilon(claim.promised)}."
    alt = (
        f"Epsilon spent by {spending.client} by round, up to {epsilon(spending.epsilon[-1])} after round "
        f"{spending.rounds[-1]}.{budget}{shown}"
    )
    caption = (
        "The epsilon that the ledger says was spent (an upper bound, by proof) and the epsilon that the audit shows (a "
        "lower bound, by measurement). The true epsilon lies between them. A lower bound above the upper bound would "
        "contradict the claim."
        if audit.missing != IN_OWNERS_COPY
        else "The epsilon that the ledger says the rounds have spent: an upper bound, by proof."
    )
    return FigureText("epsilon", "Epsilon by round", alt, caption)


def _utility(utility: Utility) -> FigureText:
    first = utility.rows[0]
    alt = (
        f"MRR of tails, heads and both for the run and what it is compared with. The run: tail {share(first.tail)}, "
        f"head {share(first.head)}, both {share(first.both)}."
    )
    caption = (
        "Ranking tails is easy: counting does it well. To see what the model adds, compare heads, and both sides "
        "together, with the popularity controls."
    )
    return FigureText("utility", "Utility beside the controls", alt, caption)
