"""Attack a recorded run: every attack, every design of targets, round by round, with honest metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks import ATTACKS, check, make_attack
from fedkge.attacks.cia import CIA
from fedkge.attacks.lira import offline, online
from fedkge.attacks.rows_changed import RowsChanged, count_changed
from fedkge.attacks.view import Adversary, Attacker, View
from fedkge.audit.metrics import attack_metrics
from fedkge.base.errors import ConfigurationError, FedkgeError
from fedkge.experiments.exposed import Latest, write_exposed
from fedkge.experiments.fork import ForkedSeat
from fedkge.experiments.inline import inline_gain
from fedkge.experiments.outcomes import RESULTS, Outcome, best_round, grouped, read_results, write_results
from fedkge.experiments.real_targets import part_within
from fedkge.experiments.recorded_views import recorded_view, shard_of
from fedkge.experiments.run_targets import targets_of
from fedkge.experiments.shadow_attack import NEEDS_REAL, SHADOW, SHADOWS, attack_by_shadows
from fedkge.experiments.shadow_features import SEEN_BY
from fedkge.experiments.shadows import ShadowPlan, shadow_scores
from fedkge.experiments.targets import Design, Targets, auxiliary_triples
from fedkge.graph import Triples
from fedkge.runs.run import Run
from fedkge.runs.transcript import Transcript

__all__ = [
    "ACTIVE",
    "INLINE",
    "RESULTS",
    "SHADOW",
    "SHADOWED",
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

ACTIVE = ("cia", "cia-matched", "cia-published")
"""CIA by its three statistics; all come from the same forked rounds."""
SHADOWED = ("lira", "lira-offline")
"""LiRA by its two statistics; both come from the same shadow runs, and only on canaries."""
INLINE = "cia-inline"
"""CIA as it ran within the federation, if it did; what the adversary then saw is kept, so nothing runs again."""

Progress = Callable[[str, int, int], None]
Scores = NDArray[np.floating[Any]]
Memory: TypeAlias = dict[tuple[str, Adversary, int], Scores]
"""Scores of all targets by attack, adversary and round: what was scored as the federation went is not scored again."""


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """What to attack, by whom, with what."""

    attacks: tuple[str, ...] = (*ATTACKS, *ACTIVE)
    designs: tuple[Design, ...] = ("A", "B", "C", "D")
    every: int = 5
    count: int = 500
    fewer: bool = False
    """Whether fewer than `count` targets will do where a graph has no more (design B always makes do)."""
    calibration: int = 100
    auxiliary: int = 20
    victim: str = "client-0"
    adversary: str = "client-1"
    seed: int = 0
    threads: int = 1
    cia: CIA = field(default_factory=CIA)
    shadows: ShadowPlan = field(default_factory=ShadowPlan)
    real_shadows: ShadowPlan = SHADOWS
    """The shadow federations of the attack on real triples."""


def known_attacks() -> list[str]:
    """All names that `--attack` takes."""
    return [*ATTACKS, *ACTIVE, INLINE, *SHADOWED, SHADOW]


def fitting_attacks(run: Run) -> list[str]:
    """The attacks that work on this run's model; those that train more federations (LiRA, shadow) only on request."""
    model = run.embedding(run.clients[0]).scorer.name
    fitting = [name for name, attack in ATTACKS.items() if model in (attack.needs.models or (model,))]
    return [*fitting, *ACTIVE, *([INLINE] if run.configuration.experiment.inline_attack == "cia" else [])]


def run_attacks(
    run: Run, plan: AttackPlan, progress: Progress = lambda *_: None, memory: Memory | None = None
) -> list[Outcome]:
    """All outcomes, and `attacks.json` beside the run; a single attack that does not fit the run is an error.

    `memory` is filled with what is scored; calls of the same plan that share one score every round only once.
    """
    memory = {} if memory is None else memory
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
    askable = {kind: _askable(run, plan, kind, targets) for kind in kinds}
    jobs = [job for job in _jobs(plan, views) if askable[job[1]]]
    outcomes: list[Outcome] = []
    latest: dict[tuple[str, Attacker], Latest] = {}
    for done, (names, kind, view) in enumerate(jobs):
        number, able = view.rounds[-1], askable[kind]
        progress(f"{' '.join(names)}, round {number}", done, len(jobs))
        if any((name, kind, number) not in memory for name in names):
            tell = partial(_tell, progress, f"{names[0]}, round {number}", done, len(jobs))
            everything = np.concatenate([target.everything for target in able.values()])
            found = _score(run, plan, names, view, everything, tell)
            memory |= {(name, kind, number): scores for name, scores in found.items()}
        for name in names:
            outcomes += _judge(name, kind, number, memory[name, kind, number], able)
            latest[name, kind] = number, memory[name, kind, number], able
    if INLINE in plan.attacks:
        outcomes += _inline(run, targets)
    if any(name in SHADOWED for name in plan.attacks):
        outcomes += _shadowed(run, plan, targets, auxiliary, views, progress)
    if SHADOW in plan.attacks:
        tell_shadows = partial(progress, "shadow federations")
        number = max(Transcript(run.directory).rounds(), default=0) if run.directory else 0
        for name, scores in attack_by_shadows(run, targets["R"], plan.real_shadows, tell_shadows).items():
            outcomes += _judge(name, SEEN_BY[name], number, scores, {"R": targets["R"]})
            latest[name, SEEN_BY[name]] = number, scores, {"R": targets["R"]}
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


def _askable(run: Run, plan: AttackPlan, kind: Adversary, targets: Mapping[Design, Targets]) -> dict[Design, Targets]:
    """What an adversary can be asked about: of real targets (R) a client knows only those among its own names."""
    able = dict(targets)
    if kind == "client" and "R" in able:
        names = (run.tensors[f"{which}/{plan.adversary}"] for which in ("own", "relation_ids"))
        able["R"] = part_within(able["R"], *names)
        if min(np.bincount(able["R"].members, minlength=2)) < 2:  # of each kind: what metrics need
            del able["R"]
    return able


def _tell(progress: Progress, label: str, done: int, total: int, detail: str) -> None:
    progress(f"{label}: {detail}", done, total)


def _adversaries(plan: AttackPlan) -> list[Adversary]:
    """Whose views the attacks need; what can be refused without looking at the run is refused here."""
    names = [name for name in plan.attacks if name not in (*ACTIVE, INLINE, *SHADOWED, SHADOW)]
    if SHADOW in plan.attacks and "R" not in plan.designs:
        raise ConfigurationError(NEEDS_REAL)
    if any(name in SHADOWED for name in plan.attacks):
        if not {"C", "R"} & set(plan.designs):
            raise ConfigurationError(
                "LiRA works on canaries: train with --canaries 1000 and attack with --targets C (R: real ones)"
            )
        names.append(plan.shadows.base)
    kinds = {kind for name in names for kind in make_attack(name).needs.adversary}
    kinds |= {"client"} if any(name in ACTIVE for name in plan.attacks) else set()
    return [kind for kind in get_args(Adversary) if kind in kinds]


def _jobs(plan: AttackPlan, views: Mapping[Adversary, View]) -> Iterator[tuple[tuple[str, ...], Adversary, View]]:
    """Every attack with every adversary that it is for, at every attacked round; statistics of one play together."""
    active = tuple(name for name in plan.attacks if name in ACTIVE)
    if any(name in SHADOWED for name in plan.attacks):
        base = make_attack(plan.shadows.base)
        check(base, views[base.needs.adversary[0]])
    for name in plan.attacks:
        if name in (*ACTIVE, INLINE, *SHADOWED, SHADOW):
            continue
        attack = make_attack(name)
        for kind in attack.needs.adversary:
            for number in attacked_rounds(views[kind].rounds, plan.every):
                view = views[kind].until(number)
                check(attack, view)
                yield (name,), kind, view
    if active:
        for number in attacked_rounds(views["client"].rounds, plan.every):
            yield active, "client", views["client"].until(number)


def attacked_rounds(recorded: Sequence[int], every: int) -> list[int]:
    """The recorded rounds to attack: every so many, and always the last.

    >>> attacked_rounds([1, 2, 3, 4, 5, 6, 7], 3)
    [3, 6, 7]
    """
    chosen = [number for number in recorded if number % every == 0]
    return chosen if chosen and chosen[-1] == recorded[-1] else [*chosen, recorded[-1]]


def _score(
    run: Run, plan: AttackPlan, names: Sequence[str], view: View, triples: Triples, tell: Callable[[str], None]
) -> dict[str, Scores]:
    if names[0] in ATTACKS:
        return {name: ATTACKS[name].score(view, triples) for name in names}
    number = view.rounds[-1]
    reversal = plan.cia.play(
        lambda: ForkedSeat(run, number, plan.adversary),
        triples,
        plan.threads,
        lambda done, total: tell(f"{done:,} of {total:,} targets"),
    )
    margin = view.margin if view.scorer.comparison.is_distance else 0.0
    scores = {
        "cia": reversal.gain(),
        "cia-matched": reversal.matched,
        "cia-published": reversal.published_ratio(margin),
    }
    return {name: scores[name] for name in names}


def _inline(run: Run, targets: Mapping[Design, Targets]) -> Iterator[Outcome]:
    if "C" not in targets or run.directory is None:
        raise ConfigurationError(f"attack {INLINE!r} works on canaries: attack with --targets C among the designs")
    yield from _judge(
        INLINE, "client", run.configuration.training.rounds, inline_gain(run.directory), {"C": targets["C"]}
    )


def _rows_changed(run: Run, plan: AttackPlan) -> list[RowsChanged]:
    """How many rows of the victim's uploads differ from what it was sent, in the attacked rounds."""
    recorded = Transcript(run.directory).rounds() if run.directory is not None else []
    if not recorded:
        return []
    view = recorded_view(run, "server", plan.victim, plan.adversary)
    sights = (view.look(number) for number in attacked_rounds(recorded, plan.every))
    return [
        count_changed(sight.sent, sight.upload, sight.round)
        for sight in sights
        if sight.sent is not None and sight.upload is not None
    ]


def _shadowed(
    run: Run,
    plan: AttackPlan,
    targets: Mapping[Design, Targets],
    auxiliary: Triples,
    views: Mapping[Adversary, View],
    progress: Progress,
) -> Iterator[Outcome]:
    design: Design = "C" if "C" in targets else "R"
    canaries, base = targets[design], make_attack(plan.shadows.base)
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
                yield from _judge(name, kind, number, scores, {design: canaries})


def _judge(
    name: str, kind: Attacker, number: int, scores: Scores, targets: Mapping[Design, Targets]
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
