"""What the paper says about attacks after its defence, decided by the figure over the budgets."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from fedkge.report.numbers import epsilon as written
from paper.cells import Column
from paper.claims import NOT_RUN, Answer, Facts, Finding, Rule, Vote, judged, untested
from paper.figure_defence import DefenceCell
from paper.names import BILINEAR, DEFENCES, DISTANCE, FAMILIES, defence_name, model_name, short
from paper.points import FLOOR

BASELINE, FLAMES, ADAPTIVE = "dpsgd", "dp-flames", "dp-flames-adaptive"
FIGURE = "figure-defence"
CLEAR, SAME = 0.05, 0.02
"""A fall of F1 that is called significant, and a difference that is none."""
ENOUGH, BUDGETS = FLOOR + 0.03, (16.0, 32.0)


def _cells(facts: Facts, column: Column, *defences: str) -> list[DefenceCell]:
    """Those that trained at least one round."""
    return [cell for cell in facts.defence.cells if cell.column == column and cell.defence in defences and cell.round]


def waiting(facts: Facts, column: Column, *defences: str) -> list[Vote]:
    """One empty vote per cell that has not been run."""
    return [
        Vote(None, model_name(key.model), model_name(key.model))
        for key in facts.defence.missing
        if key.column == column and key.defence in defences
    ]


def _means(facts: Facts, cell: DefenceCell) -> tuple[float, float] | None:
    return facts.defence.means(cell.data, cell.model, cell.column, cell.defence, cell.epsilon)


def _place(cell: DefenceCell) -> str:
    return f"{model_name(cell.model)}, {defence_name(cell.defence, cell.epsilon)}"


def reduced(facts: Facts) -> Finding:
    """From .831 to .594 on average."""
    printed = facts.defence.paper_before, facts.defence.paper_after
    if printed[0] is None or printed[1] is None:
        return untested("The settings do not hold the paper's two numbers.", "")
    pairs = [means for cell in _cells(facts, "published", FLAMES, ADAPTIVE) if (means := _means(facts, cell))]
    if not pairs:
        return NOT_RUN
    before, after = fmean(one for one, _ in pairs), fmean(one for _, one in pairs)
    missing, fall = len(waiting(facts, "published", FLAMES, ADAPTIVE)), printed[0] - printed[1]
    holds = before - after >= fall - SAME
    answer: Answer = "not run yet" if missing else "holds" if holds else "does not hold"
    return Finding(
        answer,
        f"{f'So far ({missing} cells not run)' if missing else 'Here'} the mean falls from {short(before)} to "
        f"{short(after)}, by {short(before - after)} in place of {short(fall)}. "
        f"{short(printed[1])} lies below the {short(FLOOR)} of calling every target a member, which a threshold "
        "chosen on the targets always reaches.",
        f"{'so far ' if missing else ''}from {short(before)} to {short(after)}",
    )


def effective(facts: Facts) -> Finding:
    """F1 falls clearly under the paper's defence."""
    votes = waiting(facts, "published", FLAMES, ADAPTIVE)
    for cell in _cells(facts, "published", FLAMES, ADAPTIVE):
        if means := _means(facts, cell):
            ranks = f", MRR {short(cell.mrr)}" if cell.mrr is not None else ""
            said = f"{_place(cell)}: {short(means[0])} to {short(means[1])}{ranks}"
            votes.append(Vote(means[0] - means[1] > CLEAR, said, model_name(cell.model)))
    note = "Read it with the utility: a federation that learns nothing gives nothing away."
    return judged(votes, "cells", share=0.75, note=note)


def guessing(*f1: float) -> bool:
    """Whether no attack is clearly above calling every target a member."""
    return max(f1) <= FLOOR + SAME


def unless_level(votes: list[Vote], level: int, *, share: float) -> Finding:
    """Judge which of two defences is better; where attacks only guess against both there is nothing to compare."""
    left_out = f"{level} places are left out: there the attacks only guess ({short(FLOOR)}) against either defence."
    if not level or any(vote.agrees is not None for vote in votes):
        return judged(votes, "places", share=share, note=left_out if level else "")
    reason = (
        f"{'So far' if votes else 'In'} all {level} places the attacks only guess ({short(FLOOR)}) against either "
        "defence, so that neither is seen to be better."
    )
    brief = f"{'so far ' if votes else ''}the attacks only guess against either"
    return Finding("not run yet" if votes else "cannot be tested", reason, brief)


def baseline_lowest(facts: Facts) -> Finding:
    """DPSGD has the lowest F1 of the three defences, usually."""
    votes, level = waiting(facts, "published", BASELINE), 0
    for cell in _cells(facts, "published", BASELINE):
        own = _means(facts, cell)
        others = [
            (facts.defence.means(cell.data, cell.model, "published", name, cell.epsilon), name)
            for name in (FLAMES, ADAPTIVE)
        ]
        found = [(means[1], name) for means, name in others if means]
        if not own or not found:
            votes.append(Vote(None, _place(cell), model_name(cell.model)))
            continue
        least, name = min(found)
        if guessing(own[1], least):
            level += 1
            continue
        said = f"{model_name(cell.model)}, ε {cell.epsilon:g}: {short(own[1])}, {DEFENCES[name]} {short(least)}"
        votes.append(Vote(own[1] <= least + SAME / 2, said, model_name(cell.model)))
    return unless_level(votes, level, share=0.51)


def _compared(
    facts: Facts,
    models: tuple[str, ...],
    families: tuple[str, ...],
    decide: Callable[[float, float], bool],
    same: bool = False,
) -> tuple[list[Vote], int]:
    """F1 under DP-FLames and under DP-FLames-Adp, attack by attack, at every budget; how often both leave guessing.

    Where that is so there is no vote, unless being the `same` is what is asked.
    """
    missing = waiting(facts, "published", FLAMES, ADAPTIVE)
    votes, level = [vote for vote in missing if vote.group in {model_name(model) for model in models}], 0
    for cell in _cells(facts, "published", FLAMES):
        for family in families if cell.model in models else ():
            one = facts.defence.at(cell.data, cell.model, "published", FLAMES, cell.epsilon, family)
            other = facts.defence.at(cell.data, cell.model, "published", ADAPTIVE, cell.epsilon, family)
            if one and other and one.f1 is not None and other.f1 is not None:
                if not same and guessing(one.f1, other.f1):
                    level += 1
                    continue
                place = f"{FAMILIES[family]}, {model_name(cell.model)}, ε {cell.epsilon:g}"
                said = f"{place}: DP-FLames {short(one.f1)}, Adp {short(other.f1)}"
                votes.append(Vote(decide(one.f1, other.f1), said, model_name(cell.model)))
    return votes, level


def adaptive_resists_active(facts: Facts) -> Finding:
    """Adp has the lower F1 of CIA on distance models."""
    votes, level = _compared(facts, DISTANCE, ("cia",), lambda fixed, adaptive: adaptive < fixed - SAME / 2)
    return unless_level(votes, level, share=0.75)


def fixed_resists_passive(facts: Facts) -> Finding:
    """DP-FLames has the lower F1 of CIP and SI on distance models."""
    votes, level = _compared(facts, DISTANCE, ("cip", "si"), lambda fixed, adaptive: fixed < adaptive - SAME / 2)
    return unless_level(votes, level, share=0.75)


def comparable(facts: Facts) -> Finding:
    """Both are alike on bilinear models."""
    both = ("cip", "cia", "si")
    votes, _ = _compared(facts, BILINEAR, both, lambda fixed, adaptive: abs(fixed - adaptive) <= CLEAR, same=True)
    return judged(votes, "places", share=0.75, note="About equally is read as within .05 of F1.")


def enough(facts: Facts) -> Finding:
    """Budgets of 16 and 32 bring every attack down to guessing."""
    votes = [
        Vote(None, model_name(key.model), model_name(key.model))
        for key in facts.defence.missing
        if key.column == "published" and key.defence in (FLAMES, ADAPTIVE) and key.epsilon in BUDGETS
    ]
    for cell in _cells(facts, "published", FLAMES, ADAPTIVE):
        if cell.epsilon in BUDGETS and (means := _means(facts, cell)):
            votes.append(Vote(means[1] <= ENOUGH, f"{_place(cell)}: {short(means[1])}", model_name(cell.model)))
    note = f"Enough is read as within .03 of guessing ({short(FLOOR)}), mean of the attacks."
    return judged(votes, "cells", share=0.75, note=note)


def runs_out(facts: Facts) -> Finding:
    """Training ends when the budget does."""
    votes = waiting(facts, "published", BASELINE, FLAMES, ADAPTIVE)
    for cell in _cells(facts, "published", BASELINE, FLAMES, ADAPTIVE):
        spent = (
            f"ε {written(cell.spent_all_orders)} by the printed formulas ({written(cell.spent)} within their orders)"
        )
        said = f"{_place(cell)}: round {cell.round} of {cell.rounds}, {spent}"
        votes.append(Vote(cell.exhausted, said, model_name(cell.model)))
    note = "A budget that training never uses up shows the last round, for every such budget the same one."
    return judged(votes, "cells", note=note)


def test_passes(facts: Facts) -> Finding:
    """The propose-test-release test lets steps pass."""
    runs = {
        cell.digest: cell
        for cell in facts.cells
        if cell.key.column == "published" and cell.key.defence in (FLAMES, ADAPTIVE) and cell.tests.get("made")
    }
    if not runs:
        return NOT_RUN
    federations = "one federation" if len(runs) == 1 else f"{len(runs)} federations"
    made, passed = (sum(cell.tests[name] for cell in runs.values()) for name in ("made", "passed"))
    return Finding(
        "holds" if passed >= 0.01 * made else "does not hold",
        f"The test passed in {passed:,} of {made:,} steps of {federations}. With "
        "parameters as printed (batch 64, sigma_p 1) a pass needs a Gaussian beyond four deviations, and a step that "
        "fails trains nothing. The paper names failing tests as the weak spot itself.",
        f"it passed in {passed:,} of {made:,} steps",
    )


DEFENCE = (
    Rule(
        "from-831-to-594",
        "Abstract",
        "under the defence the attacks' success falls from .831 to .594 on average",
        FIGURE,
        reduced,
    ),
    Rule(
        "test-may-fail",
        "Section 4.2",
        "some steps fail their test; the others go on with the rows that it releases",
        "table-utility",
        test_passes,
    ),
    Rule(
        "budget-runs-out",
        "Section 5.3",
        "each budget is used up at a round of its own, and training stops there",
        FIGURE,
        runs_out,
    ),
    Rule(
        "defence-effective",
        "Section 5.3",
        "DP-FLames and DP-FLames-Adp lower the F1 of the attacks a great deal",
        FIGURE,
        effective,
    ),
    Rule(
        "baseline-lowest",
        "Section 5.3",
        "attacks mostly do worst against the baseline (DPSGD)",
        FIGURE,
        baseline_lowest,
    ),
    Rule(
        "adp-resists-cia",
        "Section 5.3",
        "against CIA, on TransE and RotatE, DP-FLames-Adp defends better than DP-FLames",
        FIGURE,
        adaptive_resists_active,
    ),
    Rule(
        "flames-resists-passive",
        "Section 5.3",
        "against CIP and SI, DP-FLames defends better than DP-FLames-Adp",
        FIGURE,
        fixed_resists_passive,
    ),
    Rule(
        "bilinear-comparable",
        "Section 5.3",
        "for DistMult and ComplEx DP-FLames and DP-FLames-Adp defend about equally well",
        FIGURE,
        comparable,
    ),
    Rule("enough-defence", "Section 5.4", "budgets of 16 and 32 already defend enough", FIGURE, enough),
)
