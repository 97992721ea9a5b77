"""The targets of a recorded run: canaries as training left them, the other designs drawn by a seed and kept."""

from __future__ import annotations

import numpy as np

from fedkge.base.errors import ConfigurationError
from fedkge.experiments.plan import AttackPlan
from fedkge.experiments.recorded_views import shard_of
from fedkge.experiments.targets import Design, Targets, draw_targets, pool_of
from fedkge.experiments.targets.canaries import CANARIES
from fedkge.experiments.targets.files import read_targets, write_targets
from fedkge.runs.run import Run


def targets_of(run: Run, plan: AttackPlan) -> dict[Design, Targets]:
    """The targets of each design: canaries as they were inserted, the others drawn by the seed and kept."""
    if run.directory is None:
        raise ConfigurationError("attacks need a run directory: train with --out")
    canaries = run.directory / CANARIES
    inserted = read_targets(canaries, run.entities, run.relations) if canaries.exists() else None
    victim, adversary = shard_of(run, plan.victim), shard_of(run, plan.adversary)
    pool = pool_of(
        victim, adversary, run.shards, run.entities, run.relations, inserted.everything if inserted else None
    )
    targets: dict[Design, Targets] = {}
    for design in sorted(plan.designs):
        if design in ("C", "R"):
            targets[design] = _canaries(run, plan, design, inserted)
            continue
        # By the design and not by its place in the list: a design has the same targets whichever others are asked for.
        random = np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(ord(design),)))
        count = plan.count
        if design == "B":
            count = max(2, min(count, len(pool.held_out)))
        elif plan.fewer:  # some are left to calibrate a threshold on
            count = max(2, min(count, len(pool.real) * count // (count + plan.calibration)))
        targets[design] = draw_targets(design, pool, random, count, plan.calibration)
        write_targets(run.directory / f"targets-{design}.jsonl", targets[design], run.entities, run.relations)
    return targets


def _canaries(run: Run, plan: AttackPlan, design: Design, inserted: Targets | None) -> Targets:
    options = run.configuration
    if inserted is None or inserted.design != design:
        kind = "canaries that were in" if design == "C" else "real triples of which a coin took half from"
        source = "" if design == "C" else " --canary-source real"
        raise ConfigurationError(
            f"design {design} needs {kind} the victim's data: train with --canaries 1000{source}, "
            "or attack with --targets A,B,D"
        )
    if (plan.victim, plan.adversary) != (options.experiment.victim, options.experiment.adversary):
        raise ConfigurationError(
            f"design {design}: the canaries are for victim {options.experiment.victim} and adversary "
            f"{options.experiment.adversary}, got "
            f"{plan.victim} and {plan.adversary}"
        )
    return inserted
