"""A defence that releases noisy counts once and trains nothing: the model ranks by the counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedkge.accounting.facts import Described, Mechanism, Payment
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import BY_SITE, Configuration, PrivacySection
from fedkge.defences.budgeted import Budgeted, common_problems, refuse
from fedkge.defences.counts.released import CountPlan, ReleasedCounts
from fedkge.defences.defence import Advance, Auditing, Description, Gradients, PublicNumbers
from fedkge.defences.own_options import own_options
from fedkge.defences.release import Arrays, Release
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge, Geometric
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.embedding import Prior
from fedkge.models.training import Trainer


class CountsAloneOptions(PrivacySection):
    """The options of this defence. They become flags, keys of [privacy] and lines of `--help`."""

    entity_types: Annotated[int, BY_SITE] = Field(
        default=8, ge=1, description="Counts alone: number of entity types that are counted apart."
    )


@dataclass(frozen=True)
class ClientCounts(Budgeted):
    """One client. Half of epsilon pays for each of the two tables of counts, in the first round."""

    @property
    def scale(self) -> float:
        """The scale of the noise of each table."""
        return Geometric.scale_for(self.shared_epsilon / 2 / self.noise)

    def charges(self, noise: float, first: bool) -> tuple[Charge, ...]:
        """Two tables of counts, once."""
        return (Charge(Geometric(self.scale), 2),) if first else ()

    @property
    def payment(self) -> Payment:
        """The first round pays for everything."""
        return Payment.FIRST_ROUND

    def mechanism(self) -> Described:
        """The facts of the promise."""
        return Described(name="noisy counts", proof="docs/proofs/counts.md", settings=(("scale", self.scale),))

    def rounds(self, trainer: Trainer, shard: Graph) -> CountingRounds:
        """The rounds on this client's triples."""
        return CountingRounds(self, shard)


class CountingRounds:
    """Draws the counts before the first round. Later rounds do nothing."""

    def __init__(self, defence: ClientCounts, shard: Graph) -> None:
        self.defence, self._shard = defence, shard
        self.released: Release | None = None

    @property
    def tests(self) -> dict[str, int]:
        """There are no tests."""
        return {}

    def lasting(self) -> dict[str, NDArray[Any]]:
        """Only the release outlives a round."""
        return {}

    def charges(self, served: int, validations: Sequence[float]) -> tuple[Charge, ...]:
        """The counts, if they are not drawn yet."""
        return self.defence.charges(self.defence.noise, first=self.released is None)

    def draw(self, source: NoiseSource) -> bool:
        """Draw the counts; True if they must be saved now."""
        if self.released is not None:
            return False
        sizes = len(self._shard.entities), len(self._shard.relations)
        types = own_options(self.defence.options, CountsAloneOptions).entity_types
        plan = CountPlan(self.defence.scale, self.defence.scale, types)
        self.released = ReleasedCounts.draw(self._shard.train, *sizes, plan, source)
        return True

    def train(
        self,
        served: int,
        validations: Sequence[float],
        source: NoiseSource,
        generator: np.random.Generator,
        advance: Advance,
    ) -> None:
        """Train nothing: the upload is the rows that the server sent."""

    def validated(self, before: tuple[float, ...], served: int) -> tuple[float, ...]:
        """The noise does not depend on validation."""
        return before


@dataclass(frozen=True)
class CountsAlone:
    """The defence by its name."""

    name: str = "counts-alone"

    options: ClassVar[type[CountsAloneOptions]] = CountsAloneOptions
    chosen_by: ClassVar[tuple[str, ...]] = ("entity-types",)
    keeps_ledger: ClassVar[bool] = True
    has_noise_multiplier: ClassVar[bool] = False
    auditing: ClassVar[Auditing] = Auditing(gaussian=False)

    def presets(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """A small model is enough: its vectors are not trained."""
        return {"dimension": 8}

    def given_noise(self, options: Configuration) -> float | None:
        """The noise always follows from the budget."""
        return None

    def prior(self, options: Configuration, released: Release) -> Prior:
        """The counts, with weight 1."""
        return released.prior(1.0)

    def check(self, options: Configuration) -> None:
        """Refuse options that would make the promise untrue."""
        if options.privacy.epsilon is None:
            raise self.without_budget(options)
        refuse(options, common_problems(options))

    def without_budget(self, options: Configuration) -> ConfigurationError:
        """Counts need a budget."""
        return ConfigurationError(f"the defence {self.name!r} needs a budget: --epsilon 8")

    def plan(self, options: Configuration, public: PublicNumbers, noise: float) -> ClientCounts:
        """The defence of one client."""
        return ClientCounts(options, public, noise)

    def promised_options(self, mechanism: Mechanism | None) -> Mapping[str, object]:
        """The promise fixes no options."""
        return {}

    def accountant_name(self, options: Configuration) -> str:
        """The accountant of the options."""
        return options.privacy.accountant

    def check_public(self, options: Configuration, entities: int) -> None:
        """Any number of entities is fine."""

    def read_release(self, arrays: Arrays) -> ReleasedCounts:
        """The counts in these arrays."""
        return ReleasedCounts.of_arrays(arrays)

    def gradients(self, options: Configuration) -> Gradients:
        """There are no gradients of triples."""
        return Gradients()

    def describe(self, options: Configuration) -> Description:
        """Words for the report."""
        return Description(cautions=("The model ranks by noisy counts alone.",))
