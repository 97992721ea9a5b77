"""What every defence with a budget shares: its delta, its accountant, its promise, where its noise comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedkge.accounting.accountants import Accountant, make_accountant, merged
from fedkge.accounting.deltas import chosen_delta
from fedkge.accounting.facts import (
    Facts,
    Mechanism,
    NameRule,
    Payment,
    Plan,
    PublicStart,
    RandomStart,
    SecretNoise,
    SeededNoise,
)
from fedkge.accounting.filters import RenyiFilter
from fedkge.accounting.promises import Promise
from fedkge.base.errors import PrivacyError
from fedkge.configuration import Configuration
from fedkge.defences.defence import PublicNumbers, Rounds
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.training import Trainer


@dataclass(frozen=True)
class Budgeted(ABC):
    """One client's defence under a budget: `noise` is the multiplier of the first round, calibrated to the budget.

    A defence says what its rounds charge (`charges`), what its promise tells of it (`facts`) and how it trains
    (`rounds`). All prices come from the same values as what is drawn.
    """

    options: Configuration
    public: PublicNumbers
    noise: float

    @abstractmethod
    def charges(self, noise: float, first: bool) -> tuple[Charge, ...]:
        """What a round with this noise costs; the first one that a client trains also pays for what is drawn once."""

    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What a promise tells of this defence alone."""

    @property
    @abstractmethod
    def payment(self) -> Payment:
        """What a charge of a round means for the budget."""

    @abstractmethod
    def rounds(self, trainer: Trainer, shard: Graph) -> Rounds:
        """The rounds on this client's triples."""

    @property
    def holds(self) -> str:
        """Blank: it holds no graph."""
        return ""

    @property
    def adaptive(self) -> bool:
        """Whether noise follows earlier releases."""
        return False

    @property
    def accountant_name(self) -> str:
        """The name of the accountant."""
        return self.options.privacy.accountant

    @property
    def accountant(self) -> Accountant:
        """Who counts."""
        return make_accountant(self.accountant_name)

    @property
    def triples(self) -> int:
        """The number of triples that others may know."""
        return self.public.triples

    @property
    def advance(self) -> tuple[Charge, ...]:
        """What was paid before the promise."""
        return self.public.advance

    @property
    def delta(self) -> float:
        """The user's, or what the public size allows."""
        return chosen_delta(self.options.privacy.delta, self.triples, self.options.privacy.allow_large_delta)

    @property
    def shared_epsilon(self) -> float:
        """The epsilon that shares are parts of: what names leave."""
        options = self.options
        return (options.privacy.epsilon or 0.0) * (
            1 - options.privacy.names_share if options.privacy.names == "threshold" else 1
        )

    def noise_of(self, round_number: int, history: Sequence[float] = ()) -> float:  # noqa: ARG002
        """The noise of a round, after these public validation MRRs."""
        return self.noise

    def least_noise(self, round_number: int) -> float:
        """The least noise that a round may have."""
        return self.noise_of(round_number)

    def least_multiplier(self) -> float | None:
        """None: no step has a noise multiplier."""
        return None

    def first_round(self) -> tuple[Charge, ...]:
        """What the first round costs at most, with what is drawn once."""
        return self.charges(self.least_noise(1), first=True)

    def planned(self, rounds: int) -> tuple[Charge, ...]:
        """What was paid before and so many rounds cost, if the noise falls as fast as it may."""
        numbers = range(1, rounds + 1)
        return merged(
            (*self.advance, *(each for n in numbers for each in self.charges(self.least_noise(n), first=n == 1)))
        )

    def affordable(self, spent: Sequence[Charge], charges: Sequence[Charge]) -> bool:
        """Whether the budget allows these charges after what was spent."""
        epsilon, delta = self.options.privacy.epsilon, self.delta
        if epsilon is None or not charges:
            return True
        if self.adaptive:
            return RenyiFilter(epsilon, delta, self.planned(self.options.training.rounds)).admits(spent, charges)
        return self.accountant.epsilon(merged((*spent, *charges)), delta) <= epsilon

    def promise(self, client: str) -> Promise:
        """What the client promises before it spends anything."""
        options = self.options
        facts = Facts(
            data=self.public.data,
            defence=options.privacy.defence,
            mechanism=self.mechanism(),
            plan=Plan(payment=self.payment, rounds=options.training.rounds, triples=self.triples, noise=self.noise),
            noise_source=noise_source_of(options),
            names=NameRule(options.privacy.names),
            start=_start(options.training.init),
        )
        largest = self.charges(self.least_noise(options.training.rounds), first=True)
        return Promise(
            client, self.delta, options.privacy.epsilon, self.accountant_name, largest_round=largest, facts=facts
        )

    def source(self, client: int, round_number: int) -> NoiseSource:
        """Fresh secret noise for a round, or the research seed's."""
        seed = self.options.privacy.noise_seed
        return NoiseSource.secret() if seed is None else NoiseSource.research(seed, client, round_number)


def noise_source_of(options: Configuration) -> SecretNoise | SeededNoise:
    """Where the noise comes from, as a fact of a promise."""
    return SecretNoise() if options.privacy.noise_seed is None else SeededNoise(seed=options.privacy.noise_seed)


def _start(vectors: str) -> RandomStart | PublicStart:
    """Where training starts. Of a path only the last part: a ledger is passed on, the rest may name people and places.

    >>> _start("clinics/north/vectors.txt"), _start("")
    (PublicStart(vectors='vectors.txt'), RandomStart())
    """
    return PublicStart(vectors=Path(vectors).name or "a folder") if vectors else RandomStart()


def refuse(options: Configuration, problems: Iterable[tuple[object, str]]) -> None:
    """Raise the first of these problems that there is."""
    for wrong, reason in problems:
        if wrong:
            raise PrivacyError(f"defence {options.privacy.defence}: {reason}")


def common_problems(options: Configuration) -> Iterable[tuple[object, str]]:
    """What no promise of any defence survives."""
    chosen_delta(options.privacy.delta, options.privacy.public_triples, options.privacy.allow_large_delta)
    yield options.training.patience, "patience stops by private validation triples: set patience to 0"
    yield (
        options.training.filter_negatives,
        "filtered negatives tell which triples are private: set filter-negatives to false",
    )
    yield (
        options.training.init and not options.privacy.public_init,
        "start vectors that were trained on private triples would carry them past the noise: leave --init out, or "
        "say --public-init if everybody may know the vectors",
    )
    if options.privacy.names == "threshold":
        yield (
            options.privacy.epsilon is None,
            "names by a threshold are paid with a share of the budget: name --epsilon",
        )
        yield (
            options.federation.strategy == "pooled",
            "a pooled graph is nobody's to release names of: choose another strategy",
        )
        yield (
            options.experiment.canaries,
            "canaries take their names from triples: set names to from-triples, or canaries to 0",
        )
