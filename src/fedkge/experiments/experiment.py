"""Attack a recorded run: every attack, every design of targets, round by round, with honest metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TypeAlias, get_args

import numpy as np

from fedkge.attacks.attack import Scores
from fedkge.attacks.rows_changed import RowsChanged, count_changed
from fedkge.audit.metrics import attack_metrics
from fedkge.base.errors import ConfigurationError, FedkgeError
from fedkge.base.registry import look_up
from fedkge.experiments.attacking import (
    AttackExperiment,
    Job,
    Setting,
    attack_experiments,
    fitting_attacks,
    known_attacks,
)
from fedkge.experiments.exposed import LastScores, write_exposed
from fedkge.experiments.outcomes import RESULTS, Outcome, best_round, grouped, read_results, write_results
from fedkge.experiments.plan import AttackPlan, attacked_rounds
from fedkge.experiments.recorded_views import recorded_view, shard_of
from fedkge.experiments.targets import auxiliary_triples
from fedkge.experiments.targets.recorded import targets_of
from fedkge.runs.run import Run
from fedkge.runs.transcript import Transcript
from fedkge.runs.view import Adversary, Attacker

__all__ = [
    "RESULTS",
    "AttackPlan",
    "Outcome",
    "attacked_rounds",
    "best_round",
    "fitting_attacks",
    "grouped",
    "known_attacks",
    "read_results",
    "run_attacks",
    "targets_of",
]

Progress = Callable[[str, int, int], None]
Memory: TypeAlias = dict[tuple[str, Attacker, int], Scores]
"""Scores of all targets by attack, adversary and round: what was scored during the training is not scored again."""


def run_attacks(
    run: Run, plan: AttackPlan, progress: Progress = lambda *_: None, memory: Memory | None = None
) -> list[Outcome]:
    """All outcomes, and `attacks.json` beside the run; a single attack that does not fit the run is an error.

    `memory` is filled with what is scored; calls of the same plan that share one score every round only once.
    """
    memory = {} if memory is None else memory
    plan = replace(plan, attacks=plan.attacks or tuple(fitting_attacks(run)))
    chosen = _chosen(plan)
    setting = _setting(run, plan, [experiment for experiment, _ in chosen])
    jobs = [job for experiment, names in chosen for job in experiment.jobs(setting, names)]
    outcomes: list[Outcome] = []
    latest: dict[tuple[str, Attacker], LastScores] = {}
    for done, job in enumerate(jobs):
        label = f"{' '.join(job.names)}, round {job.round}"
        progress(label, done, len(jobs))
        if any((name, job.adversary, job.round) not in memory for name in job.names):
            found = job.score(partial(_detail, progress, f"{job.names[0]}, round {job.round}", done, len(jobs)))
            memory |= {(name, job.adversary, job.round): scores for name, scores in found.items()}
        for name in job.names:
            scores = memory[name, job.adversary, job.round]
            outcomes += _judge(name, job, scores)
            if job.exposes:
                latest[name, job.adversary] = job.round, scores, job.targets
    if not outcomes:
        raise ConfigurationError(
            f"{', '.join(plan.attacks)}: a client knows only names that it shares with the victim, and hardly any real "
            "target (design R) is among them: train with more --canaries, or choose attacks of the server"
        )
    progress("done", len(jobs), len(jobs))
    if run.directory is not None:
        write_results(run.directory, asdict(plan), outcomes, _rows_changed(run, plan))
        write_exposed(run.directory, latest, run.entities, run.relations)
    return outcomes


def _detail(progress: Progress, label: str, done: int, total: int, detail: str) -> None:
    progress(f"{label}: {detail}", done, total)


def _chosen(plan: AttackPlan) -> list[tuple[AttackExperiment, list[str]]]:
    """The experiments of the plan's attacks in their order, each with the names that were asked for."""
    known = attack_experiments()
    groups: dict[int, tuple[AttackExperiment, list[str]]] = {}
    for name in plan.attacks:
        experiment = look_up(known, name, "attack")
        groups.setdefault(id(experiment), (experiment, []))[1].append(name)
    return list(groups.values())


def _setting(run: Run, plan: AttackPlan, experiments: Sequence[AttackExperiment]) -> Setting:
    kinds = {kind for experiment in experiments for kind in experiment.adversaries(plan)}
    targets = targets_of(run, plan)
    auxiliary = auxiliary_triples(
        shard_of(run, plan.victim),
        targets.values(),
        run.entities,
        run.relations,
        np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(99,))),
        plan.auxiliary,
    )
    views = {
        kind: recorded_view(run, kind, plan.victim, plan.adversary, auxiliary)
        for kind in get_args(Adversary)
        if kind in kinds
    }
    return Setting(run, plan, targets, auxiliary, views)


def _rows_changed(run: Run, plan: AttackPlan) -> list[RowsChanged]:
    """How many rows of the victim's uploads differ from what it was sent, in the attacked rounds."""
    recorded = Transcript(run.directory).rounds() if run.directory is not None else []
    if not recorded:
        return []
    view = recorded_view(run, "server", plan.victim, plan.adversary)
    rounds = attacked_rounds(recorded, plan.every)
    tables = ((number, view.table(number, "sent"), view.table(number, "upload")) for number in rounds)
    return [
        count_changed(sent, upload, number)
        for number, sent, upload in tables
        if sent is not None and upload is not None
    ]


def _judge(name: str, job: Job, scores: Scores) -> Iterator[Outcome]:
    first = 0
    for design, target in job.targets.items():
        middle, last = first + len(target), first + len(target.everything)
        calibrated = min(np.bincount(target.calibration_members, minlength=2)) >= 2  # of each kind: what metrics need
        try:
            metrics = attack_metrics(
                scores[first:middle],
                target.members,
                calibration_scores=scores[middle:last] if calibrated else None,
                calibration_members=target.calibration_members if calibrated else None,
            )
        except FedkgeError as error:
            raise type(error)(f"attack {name!r}, design {design}, round {job.round}: {error}") from error
        yield Outcome(name, job.adversary, design, job.round, metrics.as_dict())
        first = last
