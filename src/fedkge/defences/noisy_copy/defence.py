"""The noisy copy as a defence: which options it takes, how it is told and audited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedkge.accounting.facts import Mechanism
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.defences.budgeted import common_problems, refuse
from fedkge.defences.defence import Auditing, Description, Gradients, PublicNumbers
from fedkge.defences.noisy_copy.client import ClientCopy
from fedkge.defences.noisy_copy.noisy_copy import NoisyCopy
from fedkge.defences.noisy_copy.options import CopyOptions, copy_options
from fedkge.defences.noisy_copy.presets import completed
from fedkge.defences.release import Arrays, Release
from fedkge.models.embedding import Prior

MOST_EPSILON = 500.0
STEPS = "--defence noisy-steps"

SEEN = (
    "An adversary who sees a noisy copy can combine its counts and its responses. This report says how well such an "
    "adversary guesses one triple, and how much of each graph the copies contain."
)
RANDOM_CANARIES = (
    "A noisy copy hardly ever asks about random canaries. So attacks and an audit on them say little about ordinary "
    "triples: train with `--canary-source likely`, read design B, and judge by epsilon."
)
NOT_ASKED = (
    "A canary is a random triple, but a noisy copy asks about likely triples. So a canary shows less than an ordinary "
    "triple reveals. Read the results of design B too."
)


@dataclass(frozen=True)
class NoisyCopyDefence:
    """The defence `recommended`: a client copies its graph once, with noise, and trains on the copy alone."""

    name: str = "recommended"
    chosen_by: tuple[str, ...] = ("epsilon",)

    options: ClassVar[type[CopyOptions]] = CopyOptions
    keeps_ledger: ClassVar[bool] = True
    has_noise_multiplier: ClassVar[bool] = False
    auditing: ClassVar[Auditing] = Auditing(("copy",), gaussian=False, options={"canary-source": "likely"})

    def presets(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The preset for the model and the budget in these options."""
        return completed(given, self.name)

    def given_noise(self, options: Configuration) -> float | None:  # noqa: ARG002
        """None: it always follows from the budget."""
        return None

    def prior(self, options: Configuration, released: Release) -> Prior:
        """What the counts and answers of a copy add to the scores."""
        return released.prior(copy_options(options).count_weight)

    def check(self, options: Configuration) -> None:
        """Refuse options that would make a promise untrue, before anything is read or written."""
        if options.privacy.epsilon is None:
            raise self.without_budget(options)
        refuse(options, common_problems(options))
        refuse(options, _problems(options))

    def without_budget(self, options: Configuration) -> ConfigurationError:
        """A copy needs a budget: there is no step that noise could be given for."""
        return ConfigurationError(f"the defence {options.privacy.defence!r} needs a budget: --epsilon 8")

    def promised_options(self, mechanism: Mechanism | None) -> Mapping[str, object]:  # noqa: ARG002
        """None."""
        return {}

    def accountant_name(self, options: Configuration) -> str:
        """Who counts."""
        return options.privacy.accountant

    def plan(self, options: Configuration, public: PublicNumbers, noise: float) -> ClientCopy:
        """One client's copy."""
        return ClientCopy(options, public, noise)

    def check_public(self, options: Configuration, entities: int) -> None:
        """Everything suits."""

    def read_release(self, arrays: Arrays) -> NoisyCopy:
        """The copy that these arrays were made from."""
        return NoisyCopy.of_arrays(arrays)

    def gradients(self, options: Configuration) -> Gradients:  # noqa: ARG002
        """Whole gradients: they are the copy's, which is paid for."""
        return Gradients()

    def describe(self, options: Configuration) -> Description:
        """The copy in words."""
        ordinary = options.experiment.canary_source in ("likely", "real")
        return Description(
            cautions=(SEEN, *([RANDOM_CANARIES] if options.experiment.canaries and not ordinary else [])),
            canaries=() if ordinary else (NOT_ASKED,),
        )


def _problems(options: Configuration) -> Iterator[tuple[object, str]]:
    """What does not go with a noisy copy, and why."""
    shares = copy_options(options)
    yield (
        not shares.copy_share,
        f"the defence {options.privacy.defence} is a copy: set copy-share, or choose {STEPS}",
    )
    yield not shares.count_share, "a copy needs counts to know what to ask: set count-share above 0"
    yield (
        abs(shares.count_share + shares.copy_share - 1) > 1e-9,
        "count-share and copy-share must add up to 1",
    )
    yield (
        options.privacy.epsilon and options.privacy.epsilon > MOST_EPSILON,
        f"an epsilon above {MOST_EPSILON:g} hides nothing",
    )
    yield (
        options.federation.strategy == "pooled",
        f"a pooled graph is nobody's to copy: choose another strategy, or {STEPS}",
    )
