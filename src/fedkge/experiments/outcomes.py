"""Outcomes of attacks: what one attack reached on one design at one round, and `attacks.json`, which keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedkge.attacks.rows_changed import RowsChanged
from fedkge.attacks.si import SICentres, SILink
from fedkge.base.short_repr import short_repr
from fedkge.experiments.targets import Design
from fedkge.runs.view import Attacker
from fedkge.store.durable_files import write_atomically
from fedkge.store.result_files import read_attacks_file

RESULTS = "attacks.json"
LINK, TRIPLE = SILink().name, SICentres().name
"""SI asks two questions: are these two linked at all, and is it by this relation?"""


@short_repr("attack", "adversary", "design")
@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attack did on one design at one round."""

    attack: str
    adversary: Attacker
    design: Design
    round: int
    metrics: Mapping[str, Any]


def best_round(outcomes: Sequence[Outcome]) -> Outcome:
    """The round with the highest F1, as the paper reports it."""
    return max(outcomes, key=lambda outcome: outcome.metrics["best_f1"]["value"])


def grouped(outcomes: Sequence[Outcome]) -> dict[tuple[str, Attacker, Design], list[Outcome]]:
    """Outcomes by attack, adversary and design, in the order of their rounds."""
    groups: dict[tuple[str, Attacker, Design], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.attack, outcome.adversary, outcome.design), []).append(outcome)
    return groups


def link_and_triple(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """SI's two areas under the curve apart, by design and round, where both were measured."""
    found = {(one.attack, one.design, one.round): one.metrics["auc"] for one in outcomes}
    return [
        {"design": design, "round": number, "link_auc": found[LINK, design, number], "triple_auc": area}
        for (attack, design, number), area in found.items()
        if attack == TRIPLE and (LINK, design, number) in found
    ]


def with_few_curves(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, group by group, with ROC points for the best and the last round of each attack only."""
    kept = []
    for group in grouped(outcomes).values():
        shown = {best_round(group).round, group[-1].round}
        for outcome in group:
            metrics = {key: value for key, value in outcome.metrics.items() if key != "roc" or outcome.round in shown}
            kept.append(replace(outcome, metrics=metrics))
    return kept


def write_results(
    folder: Path, plan: Mapping[str, Any], outcomes: Sequence[Outcome], changed: Sequence[RowsChanged] = ()
) -> None:
    """attacks.json: the plan, every outcome by round, SI's two areas, and how many rows of the uploads changed.

    ROC points are kept for the best and the last round of each attack only.
    """
    content = {
        "format": 1,
        "plan": dict(plan),
        "outcomes": [asdict(outcome) for outcome in with_few_curves(outcomes)],
        "si": link_and_triple(outcomes),
        "rows_changed": [asdict(count) for count in changed],
    }
    write_atomically(folder / RESULTS, json.dumps(content, indent=1).encode())


def read_results(path: Path) -> list[Outcome]:
    """The outcomes that `write_results` kept."""
    content = read_attacks_file(path)
    return [Outcome(**outcome) for outcome in content["outcomes"]] if content else []


def read_rows_changed(path: Path) -> list[RowsChanged]:
    """The counts of changed rows that `write_results` kept."""
    content = read_attacks_file(path)
    return [RowsChanged(**count) for count in content.get("rows_changed", [])] if content else []
