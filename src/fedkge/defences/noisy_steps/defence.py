"""Noisy steps as a defence: which options they take, how they are told and audited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fedkge.accounting.facts import Mechanism
from fedkge.accounting.facts import NoisySteps as StepFacts
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.defences.budgeted import common_problems, refuse
from fedkge.defences.counts.released import ReleasedCounts
from fedkge.defences.defence import Auditing, Description, Gradients, PublicNumbers
from fedkge.defences.noisy_steps.client import ClientSteps, accountant_of, clip_of, schedule_of, selection_of
from fedkge.defences.noisy_steps.options import StepOptions, steps_of
from fedkge.defences.noisy_steps.presets import completed
from fedkge.defences.release import Arrays, Release
from fedkge.models.embedding import Prior


@dataclass(frozen=True)
class NoisySteps:
    """A defence by noisy steps, with a preset. What the preset chose stands in the options of a run."""

    name: str
    preset: Mapping[str, Any] = field(default_factory=dict)
    by_model: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    chosen_by: tuple[str, ...] = ()

    options: ClassVar[type[StepOptions]] = StepOptions
    keeps_ledger: ClassVar[bool] = True
    has_noise_multiplier: ClassVar[bool] = True
    auditing: ClassVar[Auditing] = Auditing()

    def presets(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The preset for the model and the budget in these options."""
        return completed(self.preset, self.by_model, given)

    def given_noise(self, options: Configuration) -> float | None:
        """The noise multiplier, where it is given."""
        return steps_of(options).noise

    def prior(self, options: Configuration, released: Release) -> Prior:
        """What noisy counts add to the scores."""
        return released.prior(steps_of(options).count_weight)

    def check(self, options: Configuration) -> None:
        """Refuse options that would make a promise untrue, before anything is read or written."""
        if options.privacy.epsilon is None and self.given_noise(options) is None:
            raise self.without_budget(options)
        selection_of(options)
        refuse(options, common_problems(options))
        refuse(options, _problems(options))

    def without_budget(self, options: Configuration) -> ConfigurationError:
        """The noise is given, or calibrated to a budget."""
        return ConfigurationError(
            f"the defence {options.privacy.defence!r} needs a budget or noise: --epsilon 8 or --noise 1"
        )

    def promised_options(self, mechanism: Mechanism | None) -> Mapping[str, object]:
        """How often noise may fall: a filter's order was chosen by it."""
        every = mechanism.validation_every if isinstance(mechanism, StepFacts) else None
        return {} if every is None else {"evaluate_every": every}

    def accountant_name(self, options: Configuration) -> str:
        """Who counts."""
        return accountant_of(options)

    def plan(self, options: Configuration, public: PublicNumbers, noise: float) -> ClientSteps:
        """One client's steps."""
        return ClientSteps(options, public, noise)

    def check_public(self, options: Configuration, entities: int) -> None:
        """Refuse a number of entities that the selection does not suit."""
        plan = ClientSteps(options, PublicNumbers(options.training.batch_size, entities), 1.0)
        plan.selection.check(plan.selection_settings(1.0))

    def read_release(self, arrays: Arrays) -> ReleasedCounts:
        """The noisy counts that these arrays were made from."""
        return ReleasedCounts.of_arrays(arrays)

    def gradients(self, options: Configuration) -> Gradients:
        """Clipped gradients of Poisson samples."""
        return Gradients(clip_of(options), steps_of(options).private_negatives == "inside", poisson=True)

    def describe(self, options: Configuration) -> Description:
        """What makes the steps unsound."""
        selection = selection_of(options)
        if selection.is_private:
            return Description()
        return Description(
            not_private=f"selection {selection.name} is the paper's, as printed: relations take raw gradients and its "
            "epsilon is not sound"
        )


def _problems(options: Configuration) -> Iterator[tuple[object, str]]:
    """What does not go with noisy steps, and why."""
    selection, schedule, steps = selection_of(options), schedule_of(options), steps_of(options)
    yield (
        options.data.source in (steps.public_graph, steps.public_validation),
        f"{options.data.source} is the private data, so it cannot be the public graph too",
    )
    yield options.training.regularisation, "regularisation of positive triples is not clipped: set regularisation to 0"
    if not selection.is_private:
        yield options.privacy.names == "threshold", "the paper's formulas do not know names: set names to from-triples"
        yield steps.count_share, "the paper's formulas do not know counts: set count-share to 0"
        yield (
            schedule.adaptive,
            f"noise by validation needs a sound selection: {steps.selection} has no Renyi curve",
        )
    yield (
        steps.private_negatives == "inside" and not selection.releases_all,
        f"negatives inside the gradient touch rows that {steps.selection} would not noise: "
        "set private-negatives to public, or selection to dense",
    )
    yield (
        schedule.adaptive and not (steps.public_validation and options.privacy.epsilon),
        "noise by validation needs --public-validation GRAPH (public triples) and --epsilon",
    )
    yield (
        steps.count_share and options.privacy.epsilon is None,
        "counts are paid with a share of the budget: name --epsilon, or set count-share to 0",
    )
