"""What the paper says about utility against defence, decided by the figure of that name."""

from __future__ import annotations

from collections.abc import Callable

from paper.cells import Column
from paper.claims import Facts, Finding, Rule, Vote, judged
from paper.claims_defence import (
    ADAPTIVE,
    BASELINE,
    CLEAR,
    FLAMES,
    SAME,
    guessing,
    unless_level,
    waiting,
)
from paper.claims_utility import better
from paper.figure_tradeoff import Trade
from paper.names import BILINEAR, DISTANCE, defence_name, model_name, short

TRADEOFF = "figure-tradeoff"
ALL = DISTANCE + BILINEAR


def _compared(
    facts: Facts,
    column: Column,
    names: tuple[str, str],
    decide: Callable[[Trade, Trade], bool],
    models: tuple[str, ...] = ALL,
) -> list[Vote]:
    """One defence against another at every budget; the cells of both that have not been run have no vote yet."""
    wanted = {model_name(model) for model in models}
    votes = [vote for vote in waiting(facts, column, *names) if vote.group in wanted]
    for model in models:
        others = facts.tradeoff.of(model, column, names[1])
        for budget, own in facts.tradeoff.of(model, column, names[0]).items():
            if other := others.get(budget):
                said = f"MRR {short(own.mrr)}, F1 less by {short(own.decrease)}, against {short(other.mrr)} and"
                place = f"{model_name(model)}, {defence_name(names[0], budget)}"
                votes.append(Vote(decide(own, other), f"{place}: {said} {short(other.decrease)}", model_name(model)))
    return votes


def _better(own: Trade, other: Trade) -> bool:
    return better(own.mrr, other.mrr) and own.decrease >= other.decrease - CLEAR


def better_tradeoff(facts: Facts) -> Finding:
    """Both of the paper's defences against its baseline, at the same budget."""
    votes = [vote for name in (FLAMES, ADAPTIVE) for vote in _compared(facts, "published", (name, BASELINE), _better)]
    note = "Better is read as .01 more MRR, at a decrease of F1 that is at most .05 smaller than the baseline's."
    return judged(votes, "places", share=0.75, note=note)


def fixed_defends_better(facts: Facts) -> Finding:
    """DP-FLames takes more from the attacks on distance models."""
    votes = _compared(
        facts,
        "published",
        (FLAMES, ADAPTIVE),
        lambda own, other: own.decrease > other.decrease + SAME / 2,
        DISTANCE,
    )
    points = [facts.tradeoff.of(model, "published", name) for model in DISTANCE for name in (FLAMES, ADAPTIVE)]
    after = [means[1] for some in points for one in some.values() if (means := _means(facts, one))]
    if after and guessing(*after):
        level = [vote for vote in votes if vote.agrees is not None]
        return unless_level([vote for vote in votes if vote.agrees is None], len(level), share=0.75)
    return judged(votes, "places", share=0.75)


def _means(facts: Facts, one: Trade) -> tuple[float, float] | None:
    return facts.defence.means(one.data, one.model, one.column, one.defence, one.epsilon)


def adaptive_should_vary(facts: Facts) -> Finding:
    """Sound: noise that falls against noise that stays, at the same epsilon."""
    note = "Both made sound, both sides ranked; falling noise against constant noise at equal epsilon."
    return judged(_compared(facts, "sound", (ADAPTIVE, FLAMES), _better), "places", share=0.51, note=note)


TRADEOFFS = (
    Rule(
        "adaptive-noise",
        "Section 1",
        "noise should change during training, because that trades privacy for utility better",
        TRADEOFF,
        adaptive_should_vary,
    ),
    Rule(
        "better-tradeoff",
        "Section 5.4",
        "DP-FLames and DP-FLames-Adp trade utility for defence better than the baseline",
        TRADEOFF,
        better_tradeoff,
    ),
    Rule(
        "flames-defends-better",
        "Section 5.4",
        "DP-FLames takes more from the attacks on TransE and RotatE than DP-FLames-Adp",
        TRADEOFF,
        fixed_defends_better,
    ),
)
