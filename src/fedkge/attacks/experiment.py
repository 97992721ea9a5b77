"""Attack a recorded run: every attack, every design of targets, round by round, with honest metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks import ATTACKS, check, make_attack
from fedkge.attacks.canaries import CANARIES
from fedkge.attacks.cia import CIA
from fedkge.attacks.exposed import write_exposed
from fedkge.attacks.fork import ForkedSeat
from fedkge.attacks.lira import offline, online
from fedkge.attacks.recorded import recorded_view, shard_of
from fedkge.attacks.shadows import ShadowPlan, shadow_scores
from fedkge.attacks.target_files import read_targets, write_targets
from fedkge.attacks.targets import Design, Targets, auxiliary_triples, draw_targets, pool_of
from fedkge.attacks.view import Adversary, View
from fedkge.audit.metrics import attack_metrics
from fedkge.errors import ConfigurationError, FedkgeError
from fedkge.federation.run import Run
from fedkge.federation.storage import write_atomically
from fedkge.graph import Triples

RESULTS = "attacks.json"
ACTIVE = ("cia", "cia-matched", "cia-published")
"""CIA by its three statistics; all come from the same forked rounds."""
SHADOWED = ("lira", "lira-offline")
"""LiRA by its two statistics; both come from the same shadow runs, and only on canaries."""

Progress = Callable[[str, int, int], None]
Scores = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """What to attack, by whom, with what."""

    attacks: tuple[str, ...] = (*ATTACKS, *ACTIVE)
    designs: tuple[Design, ...] = ("A", "B", "C", "D")
    every: int = 5
    count: int = 500
    calibration: int = 100
    auxiliary: int = 20
    victim: str = "client-0"
    adversary: str = "client-1"
    seed: int = 0
    threads: int = 1
    cia: CIA = field(default_factory=CIA)
    shadows: ShadowPlan = field(default_factory=ShadowPlan)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attack did on one design at one round."""

    attack: str
    adversary: Adversary
    design: Design
    round: int
    metrics: Mapping[str, Any]


def known_attacks() -> list[str]:
    """All names that `--attack` takes."""
    return [*ATTACKS, *ACTIVE, *SHADOWED]


def fitting_attacks(run: Run) -> list[str]:
    """The attacks that work on this run's model; LiRA, which trains many more federations, only on request."""
    model = run.embedding(run.clients[0]).scorer.name
    fitting = [name for name, attack in ATTACKS.items() if model in (attack.needs.models or (model,))]
    return [*fitting, *ACTIVE]


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
        if design == "C":
            if inserted is None:
                raise ConfigurationError(
                    "design C needs canaries that were in the victim's data: train with --canaries 1000, "
                    "or attack with --targets A,B,D"
                )
            if (plan.victim, plan.adversary) != (run.configuration.victim, run.configuration.adversary):
                raise ConfigurationError(
                    f"design C: the canaries are for victim {run.configuration.victim} and adversary "
                    f"{run.configuration.adversary}, got {plan.victim} and {plan.adversary}"
                )
            targets[design] = inserted
            continue
        # By the design and not by its place in the list: a design has the same targets whichever others are asked for.
        random = np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(ord(design),)))
        count = max(2, min(plan.count, len(pool.held_out))) if design == "B" else plan.count
        targets[design] = draw_targets(design, pool, random, count, plan.calibration)
        write_targets(run.directory / f"targets-{design}.jsonl", targets[design], run.entities, run.relations)
    return targets


def run_attacks(run: Run, plan: AttackPlan, progress: Progress = lambda *_: None) -> list[Outcome]:
    """All outcomes, and `attacks.json` beside the run; a single attack that does not fit the run is an error."""
    kinds = _adversaries(plan)
    targets = targets_of(run, plan)
    auxiliary = auxiliary_triples(
        shard_of(run, plan.victim),
        targets.values(),
        run.entities,
        run.relations,
        np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(99,))),
        plan.auxiliary,
    )
    views = {kind: recorded_view(run, kind, plan.victim, plan.adversary, auxiliary) for kind in kinds}
    jobs = list(_jobs(plan, views))
    everything = np.concatenate([target.everything for target in targets.values()])
    outcomes: list[Outcome] = []
    latest: dict[tuple[str, Adversary], tuple[int, Scores]] = {}
    for done, (name, kind, view) in enumerate(jobs):
        progress(f"{name}, round {view.rounds[-1]}", done, len(jobs))
        for label, scores in _score(run, plan, name, view, everything).items():
            outcomes += _judge(label, kind, view.rounds[-1], scores, targets)
            latest[label, kind] = view.rounds[-1], scores
    if any(name in SHADOWED for name in plan.attacks):
        outcomes += _shadowed(run, plan, targets, auxiliary, views, progress)
    progress("done", len(jobs), len(jobs))
    write_results(run, plan, outcomes)
    if run.directory is not None:
        write_exposed(run.directory, latest, targets, run.entities, run.relations)
    return outcomes


def _adversaries(plan: AttackPlan) -> list[Adversary]:
    """Whose views the attacks need; what can be refused without looking at the run is refused here."""
    names = [name for name in plan.attacks if name not in (*ACTIVE, *SHADOWED)]
    if any(name in SHADOWED for name in plan.attacks):
        if "C" not in plan.designs:
            raise ConfigurationError("LiRA works on canaries: train with --canaries 1000 and attack with --targets C")
        names.append(plan.shadows.base)
    kinds = {kind for name in names for kind in make_attack(name).needs.adversary}
    kinds |= {"client"} if any(name in ACTIVE for name in plan.attacks) else set()
    return [kind for kind in get_args(Adversary) if kind in kinds]


def _jobs(plan: AttackPlan, views: Mapping[Adversary, View]) -> Iterator[tuple[str, Adversary, View]]:
    """Every attack with every adversary that it is for, at every attacked round."""
    active = [name for name in plan.attacks if name in ACTIVE]
    if any(name in SHADOWED for name in plan.attacks):
        base = make_attack(plan.shadows.base)
        check(base, views[base.needs.adversary[0]])
    for name in plan.attacks:
        if name in (*ACTIVE, *SHADOWED):
            continue
        attack = make_attack(name)
        for kind in attack.needs.adversary:
            for number in attacked_rounds(views[kind].rounds, plan.every):
                view = views[kind].until(number)
                check(attack, view)
                yield name, kind, view
    if active:
        for number in attacked_rounds(views["client"].rounds, plan.every):
            yield "+".join(active), "client", views["client"].until(number)


def attacked_rounds(recorded: Sequence[int], every: int) -> list[int]:
    """The recorded rounds to attack: every so many, and always the last.

    >>> attacked_rounds([1, 2, 3, 4, 5, 6, 7], 3)
    [3, 6, 7]
    """
    chosen = [number for number in recorded if number % every == 0]
    return chosen if chosen and chosen[-1] == recorded[-1] else [*chosen, recorded[-1]]


def _score(run: Run, plan: AttackPlan, name: str, view: View, triples: Triples) -> dict[str, Scores]:
    if name in ATTACKS:
        return {name: ATTACKS[name].score(view, triples)}
    number = view.rounds[-1]
    reversal = plan.cia.play(lambda: ForkedSeat(run, number, plan.adversary), triples, plan.threads)
    margin = view.margin if view.scorer.comparison.is_distance else 0.0
    scores = {
        "cia": reversal.gain(),
        "cia-matched": reversal.matched,
        "cia-published": reversal.published_ratio(margin),
    }
    return {label: scores[label] for label in name.split("+")}


def _shadowed(
    run: Run,
    plan: AttackPlan,
    targets: Mapping[Design, Targets],
    auxiliary: Triples,
    views: Mapping[Adversary, View],
    progress: Progress,
) -> Iterator[Outcome]:
    canaries, base = targets["C"], make_attack(plan.shadows.base)
    kind = base.needs.adversary[0]
    label = f"shadow federations of {plan.shadows.base}"
    by_round = shadow_scores(run, canaries, auxiliary, plan.shadows, lambda done, total: progress(label, done, total))
    for number in attacked_rounds(views[kind].rounds, plan.every):
        if number not in by_round:
            raise ConfigurationError(f"LiRA: not every shadow has seen round {number}; train with --fraction 1")
        observed = np.asarray(base.score(views[kind].until(number), canaries.everything), dtype=np.float64)
        for name, statistic in zip(SHADOWED, (online, offline), strict=True):
            if name in plan.attacks:
                scores = statistic(observed, by_round[number])
                yield from _judge(name, kind, number, scores, {"C": canaries})


def _judge(
    name: str, kind: Adversary, number: int, scores: Scores, targets: Mapping[Design, Targets]
) -> Iterator[Outcome]:
    first = 0
    for design, target in targets.items():
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
            raise type(error)(f"attack {name!r}, design {design}, round {number}: {error}") from error
        yield Outcome(name, kind, design, number, metrics.as_dict())
        first = last


def best_round(outcomes: Sequence[Outcome]) -> Outcome:
    """The round with the highest F1, as the paper reports it."""
    return max(outcomes, key=lambda outcome: outcome.metrics["best_f1"]["value"])


def write_results(run: Run, plan: AttackPlan, outcomes: Sequence[Outcome]) -> None:
    """attacks.json: the plan and every outcome; ROC points only for the best and the last round of each attack."""
    if run.directory is None:
        return
    kept = []
    for group in grouped(outcomes).values():
        shown = {best_round(group).round, group[-1].round}
        for outcome in group:
            metrics = {key: value for key, value in outcome.metrics.items() if key != "roc" or outcome.round in shown}
            kept.append(asdict(replace(outcome, metrics=metrics)))
    content = {"format": 1, "plan": asdict(plan), "outcomes": kept}
    write_atomically(run.directory / RESULTS, json.dumps(content, indent=1).encode())


def read_results(path: Path) -> list[Outcome]:
    """The outcomes that `write_results` kept."""
    return [Outcome(**outcome) for outcome in json.loads(path.read_text(encoding="utf-8"))["outcomes"]]


def grouped(outcomes: Sequence[Outcome]) -> dict[tuple[str, Adversary, Design], list[Outcome]]:
    """Outcomes by attack, adversary and design, in the order of their rounds."""
    groups: dict[tuple[str, Adversary, Design], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.attack, outcome.adversary, outcome.design), []).append(outcome)
    return groups
