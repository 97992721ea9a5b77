"""Attacks that train shadow federations: LiRA on canaries, and the shadow attack on real triples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedkge.attacks import make_attack
from fedkge.attacks.attack import Scores, check
from fedkge.attacks.lira import Shadows, offline, online
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.experiments.attacking.attack_experiment import Job, Report, Setting
from fedkge.experiments.plan import AttackPlan
from fedkge.experiments.shadow_attack import NEEDS_REAL, attack_by_shadows
from fedkge.experiments.shadow_features import SEEN_BY, variants_of
from fedkge.experiments.shadows import shadow_scores
from fedkge.experiments.targets import Design
from fedkge.runs.run import Run
from fedkge.runs.transcript import Transcript
from fedkge.runs.view import Adversary

STATISTICS: Mapping[str, Callable[[Scores, Shadows], Scores]] = {"lira": online, "lira-offline": offline}
"""LiRA's two statistics; both come from the same shadow runs."""


@dataclass(frozen=True, slots=True)
class LiRAExperiment:
    """LiRA on the scores of a passive attack (`plan.shadows.base`), on canaries alone."""

    names: tuple[str, ...] = tuple(STATISTICS)
    models: tuple[str, ...] = ()
    live: bool = False

    def is_usual(self, run: Run) -> bool:  # noqa: ARG002
        """Never: it trains more federations."""
        return False

    def check_training(self, configuration: Configuration) -> None:
        """What it needs is checked with the plan."""

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:
        """Those of the attack that it is based on."""
        if not {"C", "R"} & set(plan.designs):
            raise ConfigurationError(
                "LiRA works on canaries: train with --canaries 1000 and attack with --targets C (R: real ones)"
            )
        return make_attack(plan.shadows.base).needs.adversary

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterator[Job]:
        """One for each attacked round; the shadows are trained once for all of them."""
        design: Design = "C" if "C" in setting.targets else "R"
        canaries, base = setting.targets[design], make_attack(setting.plan.shadows.base)
        adversary = base.needs.adversary[0]
        view = setting.views[adversary]
        check(base, view)
        by_round: dict[int, Shadows] = {}

        def score(number: int, report: Report) -> dict[str, Scores]:
            if not by_round:
                plan, counted = setting.plan.shadows, _count(report)
                by_round.update(shadow_scores(setting.run, canaries, setting.auxiliary, plan, counted))
            if number not in by_round:
                raise ConfigurationError(f"LiRA: not every shadow has seen round {number}; train with --fraction 1")
            observed = np.asarray(base.score(view.until(number), canaries.everything), dtype=np.float64)
            return {name: STATISTICS[name](observed, by_round[number]) for name in names}

        for number in setting.rounds(adversary):
            yield Job(tuple(names), adversary, number, {design: canaries}, partial(score, number), exposes=False)


def _count(report: Report) -> Callable[[int, int], None]:
    return lambda done, total: report(f"{done} of {total} shadow federations")


@dataclass(frozen=True, slots=True)
class ShadowExperiment:
    """The shadow attack on real triples (design R). Its variants are reported apart, by what their adversary sees."""

    names: tuple[str, ...] = ("shadow",)
    models: tuple[str, ...] = ()
    live: bool = False

    def is_usual(self, run: Run) -> bool:  # noqa: ARG002
        """Never: it trains more federations."""
        return False

    def check_training(self, configuration: Configuration) -> None:
        """It needs real targets, whose coins are tossed before training."""
        experiment = configuration.experiment
        if not (experiment.canaries and experiment.canary_source == "real"):
            raise ConfigurationError(NEEDS_REAL)

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:
        """None among the views: each variant reads what its adversary sees of the run and of the shadows."""
        if "R" not in plan.designs:
            raise ConfigurationError(NEEDS_REAL)
        return ()

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterator[Job]:  # noqa: ARG002
        """One for each variant; the shadows are trained once for all of them."""
        run, targets = setting.run, setting.targets["R"]
        number = max(Transcript(run.directory).rounds(), default=0) if run.directory else 0
        found: dict[str, Scores] = {}

        def score(variant: str, report: Report) -> dict[str, Scores]:
            if not found:
                found.update(attack_by_shadows(run, targets, setting.plan.real_shadows, _count(report)))
            return {variant: found[variant]}

        for variant in variants_of(run):
            yield Job((variant,), SEEN_BY[variant], number, {"R": targets}, partial(score, variant))
