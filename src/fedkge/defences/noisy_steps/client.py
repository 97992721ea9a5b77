"""One client's noisy steps: from options and public numbers to steps, noise and prices, all out of one value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.facts import CountFacts, NegativeRule, Payment
from fedkge.accounting.facts import NoisySteps as StepFacts
from fedkge.base.registry import look_up
from fedkge.configuration import Configuration
from fedkge.defences.budgeted import Budgeted
from fedkge.defences.counts.released import CountPlan
from fedkge.defences.noisy_steps.options import steps_of
from fedkge.defences.noisy_steps.rounds import NoisyRounds
from fedkge.graph import Graph
from fedkge.mechanisms import SCHEDULES, SELECTIONS
from fedkge.mechanisms.clipping import Clip
from fedkge.mechanisms.events import Charge, Geometric
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.plan import StepPlan
from fedkge.mechanisms.schedule import Schedule, ScheduleSettings
from fedkge.mechanisms.selection import Rows, Selection, SelectionSettings
from fedkge.models.training import Trainer

PROFILE_PART = 5 / 6
"""Of what counts cost: types are found in the profile, so its noise hurts twice."""


def selection_of(options: Configuration) -> type[Selection]:
    """The selection that these options name."""
    return look_up(SELECTIONS, steps_of(options).selection, "selection")


def schedule_of(options: Configuration) -> type[Schedule]:
    """The noise schedule that these options name."""
    return look_up(SCHEDULES, steps_of(options).noise_schedule, "noise schedule")


def clip_of(options: Configuration) -> Clip:
    """How the gradient of one triple is clipped."""
    steps = steps_of(options)
    return Clip(steps.clip, steps.row_clip, steps.normalise)


def accountant_of(options: Configuration) -> str:
    """The paper's own formulas for what it prints, else the accountant of the options."""
    return options.privacy.accountant if selection_of(options).is_private else "published"


@dataclass(frozen=True)
class ClientSteps(Budgeted):
    """What a step samples, clips, selects and adds comes from `plan`, and what it costs from the same plan."""

    @property
    def accountant_name(self) -> str:
        """The name of the accountant."""
        return accountant_of(self.options)

    @property
    def steps(self) -> int:
        """Steps per round, by public numbers only."""
        return self.options.training.steps_per_round(self.triples)

    @property
    def schedule(self) -> Schedule:
        """The noise of each round."""
        options = self.options
        settings = ScheduleSettings(
            self.noise, steps_of(options).noise_decay, steps_of(options).least_gain, options.training.evaluate_every
        )
        return schedule_of(options).build(settings)

    @property
    def adaptive(self) -> bool:
        """Whether noise follows public validations."""
        return schedule_of(self.options).adaptive

    def noise_of(self, round_number: int, history: Sequence[float] = ()) -> float:
        """The noise of a round, after these public validation MRRs; rounds beyond the plan get that of its last."""
        return self.schedule.multiplier(min(round_number, self.options.training.rounds), history)

    def least_noise(self, round_number: int) -> float:
        """The least noise that a round may have: that of the schedule, or one decay per validation so far."""
        return self.schedule.least(round_number) if self.adaptive else self.noise_of(round_number)

    def least_multiplier(self) -> float:
        """The least noise multiplier of any planned round."""
        return min(self.least_noise(number) for number in range(1, self.options.training.rounds + 1))

    @property
    def selection(self) -> type[Selection]:
        """How rows are chosen."""
        return selection_of(self.options)

    def selection_settings(self, noise: float) -> SelectionSettings:
        """What the selection of a step with this noise is built from."""
        options = self.options
        return SelectionSettings(
            noise=noise,
            first_noise=self.noise,
            clip=clip_of(options),
            batch=options.training.batch_size,
            entities=self.public.entities,
            share=steps_of(options).selection_share,
            threshold=steps_of(options).selection_threshold,
            kept=steps_of(options).selection_rows,
            failure=steps_of(options).test_failure,
        )

    def plan(self, noise: float, rows: Rows | None = None) -> StepPlan:
        """A step with this noise; `rows` are those that the selection has drawn once."""
        settings = self.selection_settings(noise)
        selection, gradient = self.selection.build(settings, rows)
        return StepPlan(settings.batch, self.triples, settings.clip, gradient, selection)

    def choose_rows(self, triples: NDArray[np.int32], source: NoiseSource) -> Rows:
        """The rows that the selection draws once; what it costs is part of the first round's charges."""
        return self.selection.draw(self.selection_settings(self.noise), np.unique(triples, axis=0), source)

    def rate(self, rate: float, plan: StepPlan) -> float:
        """The learning rate: the given one, or less where the noise of a step would move numbers by too much."""
        options = self.options
        if not steps_of(options).noise_step or options.training.optimiser != "sgd":
            return rate
        return min(rate, steps_of(options).noise_step * plan.batch / plan.deviation)

    @property
    def counts(self) -> CountPlan | None:
        """How the client counts once, before its first step; None if it does not.

        A part of the share pays for the profile, the rest for the typed table; a triple changes two cells of each. The
        pooled baseline does not count: a count of all graphs is no part of one client's model.
        """
        options = self.options
        if (
            not steps_of(options).count_share
            or options.privacy.epsilon is None
            or options.federation.strategy == "pooled"
        ):
            return None
        paid = steps_of(options).count_share * self.shared_epsilon
        return CountPlan(
            Geometric.scale_for(PROFILE_PART * paid),
            Geometric.scale_for((1 - PROFILE_PART) * paid),
            steps_of(options).count_types,
        )

    def charges(self, noise: float, first: bool) -> tuple[Charge, ...]:
        """What a round with this noise costs; the first one also pays for rows and counts that are drawn once."""
        plan = self.plan(noise)
        return (*(self._once(plan.selection) if first else ()), plan.charge(self.steps))

    def _once(self, selection: Selection) -> Iterator[Charge]:
        yield from map(Charge, selection.events_once())
        if self.counts:
            yield Charge(Geometric(self.counts.profile_scale))
            yield Charge(Geometric(self.counts.typed_scale))

    @property
    def payment(self) -> Payment:
        """Every round pays for itself, unless noise follows earlier releases."""
        return Payment.WHOLE_BUDGET if self.adaptive else Payment.EACH_ROUND

    def mechanism(self) -> StepFacts:
        """What a promise tells of the steps and of the counts."""
        options, counts = self.options, self.counts
        return StepFacts(
            steps_per_round=self.steps,
            batch=options.training.batch_size,
            clip=steps_of(options).clip,
            row_clip=steps_of(options).row_clip,
            selection=steps_of(options).selection,
            negatives=NegativeRule(steps_of(options).private_negatives),
            schedule=steps_of(options).noise_schedule,
            validation_every=options.training.evaluate_every if self.adaptive else None,
            counts=CountFacts(**asdict(counts)) if counts else None,
        )

    def rounds(self, trainer: Trainer, shard: Graph) -> NoisyRounds:
        """The rounds on this client's triples."""
        return NoisyRounds(self, trainer, shard)
