"""The verdict and the rule behind it: which attacks count as leakage, corrected for how many were tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy import special

from fedkge.audit.metrics import LEVEL, Estimate
from fedkge.base.numbers import at_least, count, epsilon, percent, share, small
from fedkge.report.document import AttackRow, Audit, Claim, DesignFacts, Verdict
from fedkge.report.wording import IN_OWNERS_COPY

CHANCE = 0.5
REAL = "B"
"""The design nearest to a real attack; it does not count for the verdict, see `wording.DESIGNS`."""


def corrected_low(auc: Estimate, level: float, tests: int) -> float:
    """The lower end of an AUC's interval when `tests` intervals must hold together (Bonferroni).

    DeLong's interval is stretched by the ratio of the normal quantiles. An AUC of exactly 1 has DeLong variance 0; its
    interval is the exact one of `audit.metrics.auc` (the n-th root of alpha / 2), at the corrected level.

    >>> auc = Estimate(0.60, 0.55, 0.65)
    >>> round(corrected_low(auc, 0.95, 1), 3), round(corrected_low(auc, 0.95, 20), 3)
    (0.55, 0.523)
    >>> round(corrected_low(Estimate(1.0, 0.993, 1.0), 0.95, 20), 3)
    0.987
    """
    alpha = (1.0 - level) / tests
    if auc.value == 1.0:
        return float(auc.low ** (math.log(alpha / 2.0) / math.log((1.0 - level) / 2.0)))
    stretched = float(special.ndtri(1.0 - alpha / 2.0) / special.ndtri((1.0 + level) / 2.0))
    return max(0.0, auc.value - stretched * (auc.value - auc.low))


def judged(rows: Sequence[AttackRow], designs: Sequence[DesignFacts], level: float) -> tuple[AttackRow, ...]:
    """The rows with `corrected_low` and `leaks`, where their design counts."""
    strict = {design.design for design in designs if design.strict}
    tests = sum(row.design in strict for row in rows)
    done = []
    for row in rows:
        if row.design not in strict:
            done.append(row)
            continue
        low, turned = (corrected_low(auc, level, tests) for auc in (row.auc, _turned(row.auc)))
        done.append(replace(row, corrected_low=low, leaks=max(low, turned) > CHANCE))
    return tuple(done)


def _turned(auc: Estimate) -> Estimate:
    """The same attack with its sign reversed."""
    return Estimate(1.0 - auc.value, 1.0 - auc.high, 1.0 - auc.low)


def strongest(rows: Sequence[AttackRow]) -> AttackRow | None:
    """Of the attacks that count, the one whose corrected interval has the highest lower end; None if none counts."""
    counted = [row for row in rows if row.corrected_low is not None]
    return max(counted, key=lambda row: (row.corrected_low or 0.0, row.auc.value), default=None)


def decide(rows: Sequence[AttackRow], claim: Claim, audit: Audit, level: float = LEVEL) -> Verdict:
    """The verdict: a contradicted claim comes before leakage; without a measurement there is no finding."""
    counted = [row for row in rows if row.leaks is not None]
    found = [row for row in counted if row.leaks]
    bound = audit.largest
    if bound is not None and claim.epsilon is not None and bound.epsilon > claim.epsilon:
        kind = "claim contradicted"
        sentence = (
            f"Claim contradicted: the ledger claims an epsilon of {epsilon(claim.epsilon)}, and the audit shows at "
            f"least {at_least(bound.epsilon)}."
        )
    elif found:
        best = strongest(found)
        assert best is not None  # noqa: S101 (found is not empty)
        kind = "leakage found"
        sentence = (
            f"Leakage found: {count(len(found))} of {count(len(counted))} attacks on triples that a coin chose differ "
            "from chance. Given one triple from the data and one that is not in it, the strongest attack picks the "
            f"right one in {percent(max(best.auc.value, 1.0 - best.auc.value))} of cases."
        )
    elif bound is not None and bound.epsilon > 0:
        kind = "leakage found"
        sentence = f"Leakage found: the audit shows an epsilon of at least {at_least(bound.epsilon)}."
    elif counted or bound is not None:
        kind = "no leakage found by these attacks"
        sentence = f"No leakage found by these attacks: {_nothing(len(counted), bound is not None)}."
    else:
        kind = "not tested"
        sentence = "Not tested: no attack or audit that counts for the verdict was run on this federation."
    return Verdict(
        kind=kind,  # type: ignore[arg-type]
        sentence=sentence,
        remarks=_remarks(rows, claim, audit),
        rule=_rule(len(counted), level),
        tests=len(counted),
        found=len(found),
        chance=CHANCE,
        level=level,
        corrected_level=1.0 - (1.0 - level) / max(1, len(counted)),
    )


def promise_alone(claim: Claim, level: float = LEVEL, void: bool = False) -> Verdict:
    """The head of a shareable copy: the promise alone, because measurements are for the owner. `void`: a promise in the
    ledger is no guarantee, whatever its epsilon says.
    """
    if claim.epsilon is not None and not void:
        kind, sentence = "promise", f"Promise: epsilon {epsilon(claim.epsilon)} at delta {small(claim.delta or 0.0)}."
    elif claim.clients:
        kind, sentence = "no promise", "No promise: the epsilon in the ledger is not a guarantee."
    else:
        kind, sentence = "no promise", "No promise: this run has no defence."
    return Verdict(
        kind=kind,  # type: ignore[arg-type]
        sentence=sentence,
        remarks=(IN_OWNERS_COPY, *claim.warnings),
        rule="",
        tests=0,
        found=0,
        chance=CHANCE,
        level=level,
        corrected_level=level,
    )


def _nothing(tests: int, audited: bool) -> str:
    parts = [f"none of {count(tests)} differs from chance"] if tests else []
    parts += ["the audit's bound is 0"] if audited else []
    return ", and ".join(parts) + ". This does not prove that nothing leaks"


def _remarks(rows: Sequence[AttackRow], claim: Claim, audit: Audit) -> tuple[str, ...]:
    remarks = []
    best = strongest(rows)
    if best is not None:
        remarks.append(
            f"Strongest attack: {best.attack}, by the {best.adversary}, on design {best.design}: AUC "
            f"{share(best.auc.value)} ({share(best.auc.low)} to {share(best.auc.high)}; {share(CHANCE)} is guessing)."
        )
    real = max((row for row in rows if row.design == REAL), key=lambda row: row.auc.low, default=None)
    if real is not None:
        remarks.append(
            f"On real triples (design {REAL}) the strongest attack, {real.attack}, has AUC {share(real.auc.value)} "
            f"({share(real.auc.low)} to {share(real.auc.high)}). Membership may not be the only reason for it."
        )
    if not claim.clients:
        remarks.append("No promise was made. Nothing limits what this run reveals, whatever the attacks found.")
        if audit.largest is not None and audit.ceiling is not None:
            shown, most = at_least(audit.largest.epsilon), at_least(audit.ceiling)
            remarks.append(f"The audit shows an epsilon of at least {shown}; it could show at most {most}.")
    elif claim.epsilon is not None and audit.largest is None:
        remarks.append(
            f"The run claims epsilon {epsilon(claim.epsilon)}. No audit has tested this, and attacks alone cannot."
        )
    elif claim.epsilon is not None and audit.largest is not None:
        remarks.append(_against_claim(claim.epsilon, audit.largest.epsilon, audit.ceiling or 0.0))
    return (*remarks, *claim.warnings, *audit.warnings)


def _against_claim(claimed: float, bound: float, ceiling: float) -> str:
    shown = f"the audit shows at least {at_least(bound)} and could show at most {at_least(ceiling)}"
    if bound > claimed:
        return f"The run claims epsilon {epsilon(claimed)}; {shown}. Code, plan or proof is wrong: do not release it."
    if ceiling <= claimed:
        return f"The run claims epsilon {epsilon(claimed)}; {shown}. So this audit could not have refuted the claim."
    return f"The run claims epsilon {epsilon(claimed)}; {shown}. This does not contradict the claim, nor prove it."


def _rule(tests: int, level: float) -> str:
    return (
        "An attack counts as leakage if the confidence interval of its AUC after the last round does not contain "
        "chance. (An AUC below chance counts too, because an attacker can reverse the sign.) The interval is widened "
        f"for the number of attacks ({count(tests)} here, Bonferroni): all attacks together raise a false alarm in at "
        f"most {percent(1 - level)} of runs without leakage. Only attacks on triples that a coin chose count: random "
        "triples (design C) or real ones (design R). There, only chance decided which triples are members. On other "
        "real triples an attack may do well for other reasons. An audit counts if its bound is above 0."
    )
