"""All attacks of the project on a federation, and its audit."""

from __future__ import annotations

from typing import Any

from fedkge.attacks import ATTACKS
from fedkge.attacks.experiment import ACTIVE, AttackPlan, Outcome, fitting_attacks, run_attacks
from fedkge.attacks.targets import Design
from fedkge.audit.recorded import run_audit
from fedkge.federation.run import Run

SHARED, LIKELY = "shared", "likely"
"""Canaries of names that victim and adversary share, for every attack; likely ones, for the server, and audited."""


def canary_options(source: str) -> dict[str, Any]:
    """What a run needs to be attacked: an audit wants a coin for each canary, the paper's experiment exactly half."""
    coins = {"canary-coins": "seeded"} if source == LIKELY else {}
    return {"canaries": 1000, "canary-source": source, "record": "every:5", **coins}


def attacked(run: Run) -> dict[str, Any]:
    """The AUC of every attack after the last round, on real triples (B) and canaries (C); the bound of an audit."""
    fitting = fitting_attacks(run)
    if run.configuration.canary_source == LIKELY:
        able = tuple(name for name in fitting if name in ATTACKS and "client" not in ATTACKS[name].needs.adversary)
        audit = run_audit(run).record()
        kept = {key: audit[key] for key in ("bound", "ceiling", "verdict", "claim", "asked", "findings")}
        return {"outcomes": _outcomes(run, able, ("C",)), "audit": kept}
    passive = tuple(name for name in fitting if name not in ACTIVE)
    return {"outcomes": [*_outcomes(run, passive, ("B", "C")), *_outcomes(run, ACTIVE, ("C",))]}


def _outcomes(run: Run, names: tuple[str, ...], designs: tuple[Design, ...]) -> list[dict[str, Any]]:
    threads, last = run.configuration.threads or 1, run.configuration.rounds
    found = run_attacks(run, AttackPlan(attacks=names, designs=designs, every=last, threads=threads))
    return [_record(outcome) for outcome in found if outcome.round == last]


def _record(outcome: Outcome) -> dict[str, Any]:
    area = {key: round(value, 4) for key, value in outcome.metrics["auc"].items()}
    return {"attack": outcome.attack, "adversary": outcome.adversary, "design": outcome.design, "auc": area}
