"""The noisy copy as a defence: which options it takes, how it is told and audited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedkge.accounting.facts import Mechanism
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import OPTIONS, Configuration, kebab
from fedkge.configuration.presets import OF_STEPS
from fedkge.defences.budgeted import common_problems, refuse
from fedkge.defences.defence import Auditing, Description, Gradients, PublicNumbers
from fedkge.defences.noisy_copy.client import ClientCopy
from fedkge.defences.noisy_copy.noisy_copy import NoisyCopy
from fedkge.defences.release import Arrays

MOST_EPSILON = 500.0
STEPS = "--defence noisy-steps"

SEEN = (
    "Whoever sees a noisy copy can use its counts and its answers together. See below what a guess about one triple is "
    "worth, and how much of each graph the copies hold."
)
RANDOM_CANARIES = (
    "Random canaries are hardly ever asked about, so attacks and an audit on them say little about ordinary triples: "
    "train with `--canary-source likely`, read design B, and judge by epsilon."
)
NOT_ASKED = (
    "A canary is a random triple, and a noisy copy asks for likely ones: it shows less than an ordinary triple gives "
    "away. Read design B beside."
)


@dataclass(frozen=True)
class NoisyCopyDefence:
    """The defence `recommended`: a client copies its graph once, with noise, and trains on the copy alone."""

    name: str = "recommended"

    keeps_ledger: ClassVar[bool] = True
    has_noise_multiplier: ClassVar[bool] = False
    auditing: ClassVar[Auditing] = Auditing(("copy",), gaussian=False, options={"canary-source": "likely"})

    def check(self, options: Configuration) -> None:
        """Refuse options that would make a promise untrue, before anything is read or written."""
        if options.privacy.epsilon is None:
            raise self.without_budget(options)
        refuse(options, common_problems(options))
        refuse(options, _problems(options))

    def without_budget(self, options: Configuration) -> ConfigurationError:
        """A copy needs a budget: there is no step that noise could be given for."""
        noise = "" if options.privacy.noise is None else f"; noise is for {STEPS}"
        return ConfigurationError(f"the defence {options.privacy.defence!r} needs a budget: --epsilon 8{noise}")

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
    yield (
        not options.privacy.copy_share,
        f"the defence {options.privacy.defence} is a copy: set copy-share, or choose {STEPS}",
    )
    for name in OF_STEPS:
        given = options.option(name) != OPTIONS[name].info.default
        yield given, f"a noisy copy takes no noisy steps: leave {kebab(name)} out, or choose {STEPS}"
    yield not options.privacy.count_share, "a copy needs counts to know what to ask: set count-share above 0"
    yield (
        abs(options.privacy.count_share + options.privacy.copy_share - 1) > 1e-9,
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
