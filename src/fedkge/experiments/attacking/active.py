"""CIA, the active attack: on forks of the recorded federation, and as it ran within the federation itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedkge.attacks.attack import Scores
from fedkge.attacks.cia import Reversal
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.experiments.attacking.attack_experiment import Job, Report, Setting
from fedkge.experiments.fork import ForkedClient
from fedkge.experiments.inline import inline_gain
from fedkge.experiments.plan import AttackPlan
from fedkge.graph import Triples
from fedkge.runs.run import Run
from fedkge.runs.view import Adversary, View


def _published_ratio(reversal: Reversal, view: View) -> Scores:
    return reversal.published_ratio(view.margin if view.scorer.comparison.is_distance else 0.0)


STATISTICS: Mapping[str, Callable[[Reversal, View], Scores]] = {
    "cia": lambda reversal, _: reversal.gain(),
    "cia-matched": lambda reversal, _: reversal.matched,
    "cia-published": _published_ratio,
}
"""What is compared before and after: three statistics of the same forked rounds."""
CIA_ATTACKS = tuple(STATISTICS)


@dataclass(frozen=True, slots=True)
class ForkedCIA:
    """CIA on forks of the federation, after every attacked round."""

    names: tuple[str, ...] = CIA_ATTACKS
    models: tuple[str, ...] = ()
    live: bool = True

    def is_usual(self, run: Run) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def check_training(self, configuration: Configuration) -> None:
        """Every recorded federation can be forked."""

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:  # noqa: ARG002
        """A client."""
        return ("client",)

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterator[Job]:
        """One for each attacked round, with all statistics that were asked for."""
        targets = setting.targets_of("client")
        if not targets:
            return
        triples = np.concatenate([target.everything for target in targets.values()])
        for number in setting.rounds("client"):
            score = partial(_score_forks, setting, tuple(names), number, triples)
            yield Job(tuple(names), "client", number, targets, score)


def _score_forks(
    setting: Setting, names: tuple[str, ...], number: int, triples: Triples, report: Report
) -> dict[str, Scores]:
    reversal = setting.plan.cia.play(
        lambda: ForkedClient(setting.run, number, setting.plan.adversary),
        triples,
        setting.plan.threads,
        lambda done, total: report(f"{done:,} of {total:,} targets"),
    )
    view = setting.views["client"]
    return {name: STATISTICS[name](reversal, view) for name in names}


@dataclass(frozen=True, slots=True)
class InlineExperiment:
    """CIA as it ran within the federation, if it did. What the adversary saw then is kept, so nothing runs again."""

    names: tuple[str, ...] = ("cia-inline",)
    models: tuple[str, ...] = ()
    live: bool = False

    def is_usual(self, run: Run) -> bool:
        """Where it took place."""
        return run.configuration.experiment.inline_attack != "none"

    def check_training(self, configuration: Configuration) -> None:
        """The configuration itself says whether it takes place."""

    def adversaries(self, plan: AttackPlan) -> tuple[Adversary, ...]:  # noqa: ARG002
        """None: it needs no view, because the adversary's client kept what it saw."""
        return ()

    def jobs(self, setting: Setting, names: Sequence[str]) -> Iterator[Job]:
        """One, for the whole federation."""
        directory = setting.run.directory
        if "C" not in setting.targets or directory is None:
            raise ConfigurationError(
                f"attack {self.names[0]!r} works on canaries: attack with --targets C among the designs"
            )
        yield Job(
            tuple(names),
            "client",
            setting.run.configuration.training.rounds,
            {"C": setting.targets["C"]},
            lambda _: dict.fromkeys(names, inline_gain(directory)),
            exposes=False,
        )
