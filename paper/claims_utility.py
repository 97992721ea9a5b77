"""What the paper says about utility under its defence, decided by Table 2."""

from __future__ import annotations

from collections.abc import Callable

from paper.claims import Facts, Finding, Rule, Vote, judged
from paper.names import data_name, model_name, short
from paper.table_utility import UtilityRow

BASELINE, FLAMES, ADAPTIVE = "dpsgd", "dp-flames", "dp-flames-adaptive"
UNDEFENDED, DENSE = "none", "noisy-steps"
TABLE = "table-utility"
MARGIN = "A difference of MRR up to .01 counts as none."
ALIKE = 0.01
"""MRRs that differ by less are called the same: one seed, and models that rank near nothing."""
SHARP, NEAR = 0.5, 0.8
"""A sharp drop leaves less than half of the undefended MRR, a modest one at least four fifths."""


def better(own: float, other: float) -> bool:
    """Whether one MRR is more than another, beyond what a seed changes.

    >>> better(0.104, 0.083), better(0.074, 0.068)
    (True, False)
    """
    return own > other + ALIKE


def _published(row: UtilityRow | None) -> float | None:
    return row.published.ranked.mrr if row and row.published and row.published.ranked else None


def _sound(row: UtilityRow | None) -> float | None:
    return row.sound.sides.both.value if row and row.sound and row.sound.sides else None


def _place(row: UtilityRow) -> str:
    return f"{model_name(row.model)} on {data_name(row.data)}"


def _votes(
    facts: Facts,
    names: tuple[str, str],
    decide: Callable[[float, float], bool],
    value: Callable[[UtilityRow | None], float | None] = _published,
) -> list[Vote]:
    """MRR under one defence against that under another (or none) at the same budget, where that covers a round."""
    votes = []
    for row in facts.utility.rows:
        if row.defence != names[0]:
            continue
        budget = 0.0 if names[1] == UNDEFENDED else row.epsilon
        beside = facts.utility.row(row.data, row.model, names[1], budget)
        own, their = value(row), value(beside)
        place = f"{_place(row)}, ε {row.epsilon:g}"
        if own is not None and their is not None:
            said = f"{place}: {short(own)} against {short(their)}"
            votes.append(Vote(decide(own, their), said, data_name(row.data)))
        elif not (_too_small(row) or _too_small(beside)):
            votes.append(Vote(None, place, data_name(row.data)))
    return votes


def _too_small(row: UtilityRow | None) -> bool:
    """Whether the budget was looked at and covers no round."""
    return bool(row and row.published and row.published.ranked is None)


def undefended(facts: Facts) -> Finding:
    """The paper's undefended MRRs are reached, ranked as it does."""
    votes = []
    for one in facts.utility.reached:
        row = facts.utility.row(one.data, one.model, UNDEFENDED, 0.0)
        if one.defended or not row:
            continue
        reached = one.ours >= one.paper if one.ours is not None else None
        if not reached and not row.sound and "sound" not in row.absent:
            reached = None  # the other column may reach it yet
        place = f"{model_name(one.model)} on {data_name(one.data)}"
        votes.append(Vote(reached, f"{place}: {short(one.ours)} (paper {short(one.paper)})", data_name(one.data)))
    return judged(votes, "federations", note="Tails alone, names that were trained on, the better of both columns.")


def baseline_drops(facts: Facts) -> Finding:
    """DPSGD leaves less than half."""
    votes = _votes(facts, (BASELINE, UNDEFENDED), lambda own, other: own < SHARP * other)
    return judged(votes, "cells", share=0.75, note="Most is read as more than half.")


def flames_above_baseline(facts: Facts) -> Finding:
    """DP-FLames ranks better than DPSGD."""
    note = f"Where the test passes no step, DP-FLames trains relations and negatives alone. {MARGIN}"
    return judged(_votes(facts, (FLAMES, BASELINE), better), "cells", share=0.75, note=note)


def flames_not_enough(facts: Facts) -> Finding:
    """DP-FLames stays well below the undefended model."""
    votes = _votes(facts, (FLAMES, UNDEFENDED), lambda own, other: own < NEAR * other)
    return judged(votes, "cells", share=0.75, note="Well enough would be four fifths of the undefended MRR.")


def adaptive_best(facts: Facts) -> Finding:
    """Adp has a higher MRR than either of the others."""
    votes = [vote for name in (BASELINE, FLAMES) for vote in _votes(facts, (ADAPTIVE, name), better)]
    return judged(votes, "comparisons", share=0.75, note=f"Against the baseline, then against DP-FLames. {MARGIN}")


def adaptive_near(facts: Facts) -> Finding:
    """Adp keeps four fifths of the undefended MRR in most cells."""
    votes = _votes(facts, (ADAPTIVE, UNDEFENDED), lambda own, other: own >= NEAR * other)
    return judged(votes, "cells", share=0.51, note="Near is read as four fifths.")


def adaptive_always(facts: Facts) -> Finding:
    """Adp ranks better than DP-FLames everywhere."""
    note = "Not in the paper's own table: DistMult on FB15k-237 (.273, .288), ComplEx on NELL-995 (.357, .375), ε 32."
    return judged(_votes(facts, (ADAPTIVE, FLAMES), better), "cells", note=note)


def modest(facts: Facts) -> Finding:
    """The proposed defence loses at most a fifth; counting alone stands beside it."""
    counting = {one.data: one.published.mrr for one in facts.utility.controls if one.published and "ep" in one.name}
    votes = _votes(facts, (ADAPTIVE, UNDEFENDED), lambda own, other: own >= NEAR * other)
    beside = ", ".join(f"{short(value)} on {data_name(data)}" for data, value in counting.items())
    note = "Little is read as a fifth at most; tails alone, as published."
    return judged(votes, "cells", share=0.75, note=f"{note} Counting with ε 1 has {beside}." if beside else note)


def sparsity_helps(facts: Facts) -> Finding:
    """Sound: choosing rows against noising all of them, at the same epsilon."""
    note = f"Both made sound, both sides ranked: rows chosen by noisy counts against dense noise. {MARGIN}"
    return judged(_votes(facts, (FLAMES, BASELINE), better, _sound), "cells", share=0.75, note=note)


def root_cause(facts: Facts) -> Finding:
    """Sound: choosing rows against dense noise with large batches."""
    votes = _votes(facts, (FLAMES, DENSE), better, _sound)
    note = "Rows chosen, against noise on every row of the same model in large batches (noisy steps), at equal ε."
    return judged(votes, "cells", share=0.51, note=note)


UTILITY = (
    Rule("modest-decrease", "Abstract", "the defence costs little utility", TABLE, modest),
    Rule(
        "sparse-tradeoff",
        "Section 1",
        "gradients that touch few entity rows allow more utility at the same privacy",
        TABLE,
        sparsity_helps,
    ),
    Rule(
        "root-cause",
        "Section 4.1",
        "the baseline suffers from the size of the model, because it ignores that gradients are sparse",
        TABLE,
        root_cause,
    ),
    Rule("undefended-mrr", "Section 5.4", "every undefended MRR that Table 2 prints", TABLE, undefended),
    Rule(
        "baseline-drop",
        "Section 5.4",
        "under the baseline (DPSGD) nearly every model loses most of its utility",
        TABLE,
        baseline_drops,
    ),
    Rule(
        "flames-above-baseline",
        "Section 5.4",
        "DP-FLames ranks better than the baseline",
        TABLE,
        flames_above_baseline,
    ),
    Rule("flames-not-enough", "Section 5.4", "DP-FLames does not rank well enough yet", TABLE, flames_not_enough),
    Rule("adp-best", "Section 5.4", "DP-FLames-Adp ranks best of the private models", TABLE, adaptive_best),
    Rule(
        "adp-near", "Section 5.4", "DP-FLames-Adp mostly comes near the model without a defence", TABLE, adaptive_near
    ),
    Rule("adp-always", "Section 5.4", "DP-FLames-Adp ranks better than DP-FLames everywhere", TABLE, adaptive_always),
)
