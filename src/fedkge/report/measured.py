"""What was measured: attacks.json, exposed.json and audit.json as parts of the document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedkge.audit.metrics import LEVEL, Estimate, RateAtFpr, smallest_fpr
from fedkge.report.document import (
    AttackRow,
    Attacks,
    AttackSeries,
    Audit,
    Bound,
    Curve,
    DesignFacts,
    Exposed,
    ExposedTriple,
)
from fedkge.report.reading import damaged
from fedkge.report.verdict import judged
from fedkge.report.wording import COINS, COUNTED, DESIGNS, DRAWN, NOT_ATTACKED, NOT_AUDITED, NOT_EXPOSED, asked_about
from fedkge.store.result_files import read_attacks_file, read_audit_file, read_exposed_file

ATTACKS, EXPOSED, AUDIT = "attacks.json", "exposed.json", "audit.json"
AGAIN = "attack the run again (`fedkge attack`)"
AUDIT_AGAIN = "audit again (`fedkge audit`)"
CURVES = 5
"""For each design, the curves of so many strongest attacks are drawn."""
NAMED = 100
"""At most so many exposed triples are listed, ordered by how many attacks found them."""
OF_REAL_TRIPLES = ("B", "D", "R")
"""Designs whose members are real triples and whose non-members look like them."""

Outcome = Mapping[str, Any]


def gather_attacks(run: Path, audit: Audit) -> Attacks:
    """All attacks after their last round, with the audit's bound where it used the same attack."""
    content = read_attacks_file(run / ATTACKS)
    if content is None:
        return Attacks(NOT_ATTACKED, LEVEL, (), (), (), ())
    try:
        groups: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
        for outcome in content["outcomes"]:
            groups[outcome["design"], outcome["attack"], outcome["adversary"]].append(outcome)
        ordered = [group for design in DESIGNS for key, group in groups.items() if key[0] == design]
        designs = tuple(_design(name, groups) for name in DESIGNS if any(key[0] == name for key in groups))
        level = ordered[0][-1]["metrics"]["level"] if ordered else LEVEL
        rows = judged([_row(group, audit) for group in ordered], designs, level)
        drawn = [group for group in ordered if _drawn(group, rows)]
        return Attacks("", level, designs, rows, tuple(map(_curve, drawn)), tuple(map(_series, drawn)))
    except (KeyError, TypeError, IndexError) as error:
        raise damaged(run / ATTACKS, error, AGAIN) from error


def targets_seed(run: Path) -> int | None:
    """The seed by which the targets were drawn."""
    content = read_attacks_file(run / ATTACKS)
    return None if content is None else content["plan"]["seed"]


def _design(name: str, groups: Mapping[tuple[str, str, str], Sequence[Outcome]]) -> DesignFacts:
    metrics = next(group[-1]["metrics"] for key, group in groups.items() if key[0] == name)
    members, non_members = metrics["members"], metrics["non_members"]
    smallest = smallest_fpr(non_members, metrics["level"])
    inside, outside, why_not = DESIGNS[name]
    because = why_not or COUNTED
    return DesignFacts(name, inside, outside, not why_not, because, members, non_members, smallest, metrics["floor_f1"])


def _row(group: Sequence[Outcome], audit: Audit) -> AttackRow:
    last, best = group[-1], max(group, key=lambda outcome: outcome["metrics"]["best_f1"]["value"])
    metrics, calibrated = last["metrics"], last["metrics"]["calibrated_f1"]
    labels = (last["attack"], f"{last['attack']} ({last['adversary']})")
    bounds = [bound for bound in audit.findings if bound.attack in labels and last["design"] in COINS]
    return AttackRow(
        attack=last["attack"],
        adversary=last["adversary"],
        design=last["design"],
        round=last["round"],
        auc=Estimate(**metrics["auc"]),
        corrected_low=None,
        leaks=None,
        tpr=tuple(RateAtFpr(**rate) for rate in metrics["tpr"]),
        best_f1=metrics["best_f1"]["value"],
        best_f1_of_any_round=best["metrics"]["best_f1"]["value"],
        best_round=best["round"],
        calibrated_f1=None if calibrated is None else calibrated["value"],
        bound=max(bounds, key=lambda bound: bound.epsilon, default=None),
    )


def _drawn(group: Sequence[Outcome], rows: Sequence[AttackRow]) -> bool:
    """Whether this is among the strongest attacks of a design whose curves are drawn."""
    last = group[-1]
    if last["design"] not in DRAWN:
        return False
    rivals = sorted((row.auc.value for row in rows if row.design == last["design"]), reverse=True)
    return bool(last["metrics"]["auc"]["value"] >= rivals[:CURVES][-1])


def _curve(group: Sequence[Outcome]) -> Curve:
    last = group[-1]
    roc = last["metrics"]["roc"]
    return Curve(
        last["attack"], last["adversary"], last["design"], last["round"], _short(roc["fpr"]), _short(roc["tpr"])
    )


def _short(values: Sequence[float]) -> tuple[float, ...]:
    """Six decimals are finer than any plot."""
    return tuple(round(value, 6) for value in values)


def _series(group: Sequence[Outcome]) -> AttackSeries:
    last = group[-1]
    rounds = tuple(outcome["round"] for outcome in group)
    auc = tuple(Estimate(**outcome["metrics"]["auc"]) for outcome in group)
    return AttackSeries(last["attack"], last["adversary"], last["design"], rounds, auc)


def gather_audit(run: Path) -> Audit:
    """All findings of the audit, so that the reader sees how many there are."""
    content = read_audit_file(run / AUDIT)
    if content is None:
        return Audit(NOT_AUDITED, None, 0, 0, None, None, None, 0, (), None, None, "", "", ())
    try:
        findings = tuple(
            Bound(one["attack"], one["bound"], one["ceiling"], one["guesses"], one["right"], one["gaussian_bound"])
            for one in content["findings"]
        )
        largest = max(findings, key=lambda bound: (bound.epsilon, bound.right / bound.guesses), default=None)
        return Audit(
            missing="",
            round=content.get("round"),
            canaries=content["canaries"],
            inserted=content["inserted"],
            delta=content["delta"],
            confidence=content["confidence"],
            alpha=round(1.0 - content["confidence"], 12),
            looks=content["comparisons"],
            findings=findings,
            largest=largest,
            ceiling=content["ceiling"],
            gaussian_holds=content["gaussian"]["holds"],
            coins=content["coins"],
            warnings=_audit_warnings(content),
        )
    except (KeyError, TypeError) as error:
        raise damaged(run / AUDIT, error, AUDIT_AGAIN) from error


def _audit_warnings(content: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    if content["coins"] != "independent":
        found.append("The coins of the canaries come from a research seed. Anyone who knows the seed knows the coins.")
    if (looks := len(content["plans"])) > 1:
        found.append(f"This run was audited in {looks} ways. The correction covers only the last one.")
    if content.get("asked") is not None:
        found.append(asked_about(content["asked"], content["canaries"]))
    return tuple(found)


def gather_exposed(run: Path) -> Exposed:
    """The real triples that at least one attack found."""
    content = read_exposed_file(run / EXPOSED)
    if content is None:
        return Exposed(NOT_EXPOSED, 0.0, 0, 0, (), 0)
    try:
        entries = [entry for entry in content["attacks"] if entry["design"] in OF_REAL_TRIPLES]
        found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        attacked = sum({entry["design"]: int(entry["members"]) for entry in entries}.values())
        for entry in entries:
            for head, relation, tail in entry["found"]:
                found[head, relation, tail].append(f"{entry['attack']} ({entry['design']})")
        ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        triples = tuple(ExposedTriple(*names, tuple(sorted(attacks))) for names, attacks in ordered[:NAMED])
        return Exposed("", content["fpr"], attacked, len(found), triples, len(found) - len(triples))
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(run / EXPOSED, error, AGAIN) from error
