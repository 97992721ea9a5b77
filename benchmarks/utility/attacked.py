"""All attacks of the project on a federation, and its audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fedkge.attacks import ATTACKS
from fedkge.experiments.attacking.active import CIA_ATTACKS
from fedkge.experiments.experiment import AttackPlan, Outcome, fitting_attacks, run_attacks
from fedkge.experiments.recorded_audit import run_audit
from fedkge.experiments.shadow_attack import SHADOW, SHADOWS
from fedkge.experiments.targets import Design
from fedkge.runs.run import Run

SHARED, LIKELY, REAL = "shared", "likely", "real"
"""Canaries of names that victim and adversary share, for every attack; likely ones, for the server, and audited; real
triples, each in or out by a coin, for the shadow attack, and audited."""
TARGETS, SMALL, OF_SMALL = 3000, ("demo", "ddb14", "nations", "kinships", "umls"), 1000
"""Real targets, and where there are fewer: at most half of what the victim alone holds."""


def canary_options(source: str, data: str) -> dict[str, Any]:
    """What a run needs to be attacked: an audit wants a coin for each canary, the paper's experiment exactly half."""
    count = 1000 if source != REAL else OF_SMALL if data in SMALL else TARGETS
    coins = {} if source == SHARED else {"canary-coins": "seeded"}
    return {"canaries": count, "canary-source": source, "record": "every:5", **coins}


def attacked(run: Run) -> dict[str, Any]:
    """The AUC of every attack after the last round, on real triples (B, R) and canaries (C); the bound of an audit."""
    fitting = fitting_attacks(run)
    if run.configuration.experiment.canary_source != SHARED:
        able = tuple(name for name in fitting if name in ATTACKS and "client" not in ATTACKS[name].needs.adversary)
        audit = run_audit(run).record()
        kept = {key: audit[key] for key in ("bound", "ceiling", "verdict", "claim", "asked", "findings")}
        if run.configuration.experiment.canary_source == REAL:
            sound = (*(name for name in able if not name.endswith("-published")), SHADOW)
            return {"outcomes": _outcomes(run, sound, ("R",)), "shadows": SHADOWS.count, "audit": kept}
        return {"outcomes": _outcomes(run, able, ("C",)), "audit": kept}
    passive = tuple(name for name in fitting if name not in CIA_ATTACKS)
    return {"outcomes": [*_outcomes(run, passive, ("B", "C")), *_outcomes(run, CIA_ATTACKS, ("C",))]}


def _outcomes(run: Run, names: tuple[str, ...], designs: tuple[Design, ...]) -> list[dict[str, Any]]:
    threads, last = run.configuration.training.threads or 1, run.configuration.training.rounds
    shadows = replace(SHADOWS, processes=threads)
    plan = AttackPlan(attacks=names, designs=designs, every=last, threads=threads, real_shadows=shadows)
    found = run_attacks(run, plan)
    return [_record(outcome) for outcome in found if outcome.round == last]


def _record(outcome: Outcome) -> dict[str, Any]:
    area = {key: round(value, 4) for key, value in outcome.metrics["auc"].items()}
    rates = {f"{rate['fpr']:g}": rate["value"] and round(rate["value"], 4) for rate in outcome.metrics["tpr"]}
    facts = {"attack": outcome.attack, "adversary": outcome.adversary, "design": outcome.design}
    return {**facts, "auc": area, "tpr": rates}
