"""All passive attacks on a federation, and one more adversary: whoever was given the victim's whole release."""

from __future__ import annotations

from typing import Any

from fedkge.attacks.experiment import ACTIVE, AttackPlan, fitting_attacks, run_attacks
from fedkge.federation.run import Run

SLOW = ("si-published",)


def attacked(run: Run) -> list[dict[str, Any]]:
    """The AUC of every attack on real triples (B) and on canaries (C), after the last round."""
    names = tuple(name for name in fitting_attacks(run) if name not in (*SLOW, *ACTIVE))
    threads = run.configuration.threads or 1
    plan = AttackPlan(attacks=names, designs=("B", "C"), every=run.configuration.rounds, threads=threads)
    return [
        {"attack": each.attack, "design": each.design, "auc": each.metrics["auc"]} for each in run_attacks(run, plan)
    ]
