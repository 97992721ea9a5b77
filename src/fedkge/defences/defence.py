"""What a defence is: one object that trains, charges, promises, explains and lets itself be audited.

Nobody outside `fedkge.defences` asks which defence a run has; whoever needs something of it asks the object. There are
four parts. A `Defence` is chosen by name (`fedkge.defences.DEFENCES`) and knows no data. `Defence.plan` makes the
`ClientDefence` of one client from public numbers and a noise multiplier: what every round charges, and the promise.
That makes the client's `Rounds`, which alone see its triples. What they release once is a `Release`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.accountants import Accountant
from fedkge.accounting.facts import Mechanism
from fedkge.accounting.promises import Promise
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration, PrivacySection
from fedkge.defences.release import Arrays, Release
from fedkge.graph import Graph
from fedkge.mechanisms.clipping import Clip
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.embedding import Prior
from fedkge.models.training import Trainer

Advance = Callable[[int], None]
STANDS_OUT = (
    "A canary is a random triple and stands out: it shows more than an ordinary triple gives away. Read design B "
    "beside."
)


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """What a defence may know of a client before it has paid for anything else."""

    triples: int
    """The number of triples that others may know: noisy and paid for, or public anyway."""
    entities: int
    data: str = ""
    """A keyed digest of the client's data, by which its holder recognises runs on the same triples; blank for none."""
    advance: tuple[Charge, ...] = ()
    """What was paid before the promise."""


@dataclass(frozen=True, slots=True)
class Description:
    """What reports say about a defence besides the facts of its promise."""

    not_private: str = ""
    """Why it promises nothing whatever its numbers say; blank where it promises something."""
    cautions: tuple[str, ...] = ()
    """What a reader of its numbers must know."""
    canaries: tuple[str, ...] = (STANDS_OUT,)
    """What random canaries say about ordinary triples."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """How a round turns triples into gradients, for an auditor who follows its steps."""

    clip: Clip | None = None
    """None: gradients are as long as they are."""
    corruptions_inside: bool = True
    """Whether each triple's corruptions are part of its gradient."""
    poisson: bool = False
    """Whether every step takes a Poisson sample and divides by the public batch size."""


@dataclass(frozen=True, slots=True)
class Auditing:
    """How a defence is audited."""

    scores: tuple[str, ...] = ()
    """Scores of its release by itself (`Release.likelihood_ratios`), by the names that an audit shows."""
    gaussian: bool = True
    """Whether its noise is Gaussian, so that the bound for Gaussian mechanisms applies."""
    options: Mapping[str, Any] | None = None
    """Options of a training run that suit its audit, unless the auditor says otherwise."""


class Rounds(Protocol):
    """The rounds of one client. Nothing else of a defence sees its triples."""

    released: Release | None
    """What was drawn once, from then on; no message carries it."""

    @property
    def tests(self) -> dict[str, int]:
        """How many tests were made and passed; empty where none are made. Everybody may know."""
        ...

    def lasting(self) -> dict[str, NDArray[Any]]:
        """The arrays that outlive a round, beside the model and `released`."""
        ...

    def charges(self, served: int, validations: Sequence[float]) -> tuple[Charge, ...]:
        """What the round will cost that is the client's own number `served`."""
        ...

    def draw(self, source: NoiseSource) -> bool:
        """Draw what must be kept before it is trained on; whether there was any."""
        ...

    def train(
        self,
        served: int,
        validations: Sequence[float],
        source: NoiseSource,
        generator: np.random.Generator,
        advance: Advance,
    ) -> float | None:
        """Train a round that is paid for; its loss, where everybody may know it."""
        ...

    def validated(self, before: tuple[float, ...], served: int) -> tuple[float, ...]:
        """The public validation MRRs after this round, where the noise follows them."""
        ...


class ClientDefence(Protocol):
    """How one client defends itself: all of it follows from options and public numbers."""

    @property
    def options(self) -> Configuration:
        """The options that hold for this client."""
        ...

    @property
    def triples(self) -> int:
        """The number of triples that others may know."""
        ...

    @property
    def delta(self) -> float:
        """The delta of its promise."""
        ...

    @property
    def accountant(self) -> Accountant:
        """Who counts."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether noise follows earlier releases, so that only a filter keeps the budget."""
        ...

    @property
    def holds(self) -> str:
        """How much of a graph such a release has held elsewhere; blank where it holds no graph."""
        ...

    def rounds(self, trainer: Trainer, shard: Graph) -> Rounds:
        """The rounds on this client's triples."""
        ...

    def first_round(self) -> tuple[Charge, ...]:
        """What the client's first round costs at most."""
        ...

    def planned(self, rounds: int) -> tuple[Charge, ...]:
        """What was paid before and so many rounds cost at most."""
        ...

    def affordable(self, spent: Sequence[Charge], charges: Sequence[Charge]) -> bool:
        """Whether the budget allows these charges after what was spent."""
        ...

    def least_multiplier(self) -> float | None:
        """The least noise multiplier of any round; None where no step has one."""
        ...

    def promise(self, client: str) -> Promise | None:
        """What the client promises before it spends anything; None where it promises nothing."""
        ...

    def source(self, client: int, round_number: int) -> NoiseSource:
        """Fresh secret noise for a round, or the research seed's."""
        ...


class Defence(Protocol):
    """A defence by name: what it takes, what it does, how it is told and audited."""

    @property
    def name(self) -> str:
        """The name of its option value."""
        ...

    @property
    def options(self) -> type[PrivacySection]:
        """Its options: `PrivacySection` or a subclass. Flags, files and --help take them from here."""
        ...

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """Options that choose this defence where none is named; the first such defence in `DEFENCES` wins."""
        ...

    keeps_ledger: ClassVar[bool]
    """Whether clients promise, pay and keep a ledger. Without one nothing is private."""
    has_noise_multiplier: ClassVar[bool]
    """Whether a step has a noise multiplier that a site may demand more of."""

    def presets(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """What it sets where these flat options do not say otherwise, also outside [privacy]."""
        ...

    def given_noise(self, options: Configuration) -> float | None:
        """The noise multiplier that the options name; None where it is calibrated to the budget."""
        ...

    def prior(self, options: Configuration, released: Release) -> Prior:
        """What a client's release adds to the scores of its model."""
        ...

    def check(self, options: Configuration) -> None:
        """Refuse options that would make a promise untrue, before anything is read or written."""
        ...

    def without_budget(self, options: Configuration) -> ConfigurationError:
        """The error for options from which no noise follows."""
        ...

    def plan(self, options: Configuration, public: PublicNumbers, noise: float) -> ClientDefence:
        """The defence of a client with these public numbers, under this noise."""
        ...

    def promised_options(self, mechanism: Mechanism | None) -> Mapping[str, object]:
        """The options that a promise has fixed, whatever a resumed run asks for."""
        ...

    def accountant_name(self, options: Configuration) -> str:
        """Who counts; what the paper prints can only be counted as it prints it."""
        ...

    def check_public(self, options: Configuration, entities: int) -> None:
        """Refuse public numbers that the options do not suit, before anything is paid."""
        ...

    def read_release(self, arrays: Arrays) -> Release:
        """The release that these arrays of a file were made from; other arrays are a RunError."""
        ...

    def gradients(self, options: Configuration) -> Gradients:
        """How its rounds turn triples into gradients."""
        ...

    def describe(self, options: Configuration) -> Description:
        """It in words."""
        ...

    @property
    def auditing(self) -> Auditing:
        """How it is audited."""
        ...
