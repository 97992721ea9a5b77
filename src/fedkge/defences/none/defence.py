"""Training as without privacy, behind the same Protocols as every defence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.accountants import Accountant, make_accountant
from fedkge.accounting.deltas import chosen_delta
from fedkge.accounting.facts import Mechanism
from fedkge.accounting.promises import Promise
from fedkge.base.errors import ConfigurationError, PrivacyError, RunError
from fedkge.configuration import Configuration, PrivacySection
from fedkge.defences.defence import Advance, Auditing, Description, Gradients, PublicNumbers, Rounds
from fedkge.defences.plain_training import train_plainly
from fedkge.defences.release import Arrays, Release
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.embedding import Prior
from fedkge.models.training import Trainer


class PlainRounds:
    """Rounds without noise, which cost nothing because nothing is promised."""

    def __init__(self, options: Configuration, trainer: Trainer, shard: Graph) -> None:
        self._options, self._trainer, self._shard = options, trainer, shard
        self.released: Release | None = None

    @property
    def tests(self) -> dict[str, int]:
        """None are made."""
        return {}

    def lasting(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def charges(self, served: int, validations: Sequence[float]) -> tuple[Charge, ...]:  # noqa: ARG002
        """Nothing."""
        return ()

    def draw(self, source: NoiseSource) -> bool:  # noqa: ARG002
        """Nothing is drawn."""
        return False

    def train(
        self,
        served: int,  # noqa: ARG002
        validations: Sequence[float],  # noqa: ARG002
        source: NoiseSource,  # noqa: ARG002
        generator: np.random.Generator,
        advance: Advance,
    ) -> float:
        """Train on the triples; the loss."""
        return train_plainly(self._trainer, self._shard.train, self._options, generator, advance)

    def validated(self, before: tuple[float, ...], served: int) -> tuple[float, ...]:  # noqa: ARG002
        """There is no noise that could follow a validation."""
        return before


@dataclass(frozen=True)
class UndefendedClient:
    """A client that promises nothing."""

    options: Configuration
    public: PublicNumbers

    adaptive: ClassVar[bool] = False
    holds: ClassVar[str] = ""

    @property
    def triples(self) -> int:
        """The exact number of triples: nobody hides it."""
        return self.public.triples

    @property
    def delta(self) -> float:
        """What a promise would have."""
        return chosen_delta(self.options.privacy.delta, self.triples, self.options.privacy.allow_large_delta)

    @property
    def accountant(self) -> Accountant:
        """Who would count."""
        return make_accountant(self.options.privacy.accountant)

    def rounds(self, trainer: Trainer, shard: Graph) -> Rounds:
        """Rounds without noise."""
        return PlainRounds(self.options, trainer, shard)

    def first_round(self) -> tuple[Charge, ...]:
        """Nothing."""
        return ()

    def planned(self, rounds: int) -> tuple[Charge, ...]:  # noqa: ARG002
        """Nothing."""
        return ()

    def affordable(self, spent: Sequence[Charge], charges: Sequence[Charge]) -> bool:  # noqa: ARG002
        """Always: there is no budget."""
        return True

    def least_multiplier(self) -> float | None:
        """There is no noise."""
        return None

    def promise(self, client: str) -> Promise | None:  # noqa: ARG002
        """None."""
        return None

    def source(self, client: int, round_number: int) -> NoiseSource:  # noqa: ARG002
        """A source that nobody draws from."""
        return NoiseSource.secret()


@dataclass(frozen=True)
class Undefended:
    """The defence `none`."""

    name: str = "none"
    chosen_by: tuple[str, ...] = ()

    options: ClassVar[type[PrivacySection]] = PrivacySection
    keeps_ledger: ClassVar[bool] = False
    has_noise_multiplier: ClassVar[bool] = False
    auditing: ClassVar[Auditing] = Auditing()

    def presets(self, given: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Nothing: defaults hold."""
        return {}

    def given_noise(self, options: Configuration) -> float | None:  # noqa: ARG002
        """There is no noise."""
        return None

    def prior(self, options: Configuration, released: Release) -> Prior:  # noqa: ARG002
        """There is no release that could have one."""
        raise RunError("expected no release in a run without a defence, got one")

    def check(self, options: Configuration) -> None:
        """Refuse options that only a budget could keep."""
        if options.privacy.epsilon is not None:
            raise PrivacyError("defence none keeps no budget: name a defence (--defence recommended), or leave it out")
        if options.privacy.names == "threshold":
            raise PrivacyError("names by a threshold are paid from a budget, and there is none: name --epsilon")

    def without_budget(self, options: Configuration) -> ConfigurationError:
        """No noise follows from anything."""
        return ConfigurationError(f"the defence {options.privacy.defence!r} has no noise")

    def promised_options(self, mechanism: Mechanism | None) -> Mapping[str, object]:  # noqa: ARG002
        """None."""
        return {}

    def accountant_name(self, options: Configuration) -> str:
        """Who would count."""
        return options.privacy.accountant

    def plan(self, options: Configuration, public: PublicNumbers, noise: float) -> UndefendedClient:  # noqa: ARG002
        """A client that promises nothing."""
        return UndefendedClient(options, public)

    def check_public(self, options: Configuration, entities: int) -> None:
        """Everything suits."""

    def read_release(self, arrays: Arrays) -> Release:
        """There is none to read."""
        raise RunError(f"expected no release in a run without a defence, got {sorted(arrays)}")

    def gradients(self, options: Configuration) -> Gradients:  # noqa: ARG002
        """Whole gradients, as long as they are."""
        return Gradients()

    def describe(self, options: Configuration) -> Description:  # noqa: ARG002
        """It promises nothing."""
        return Description(not_private="this run has no defence")
