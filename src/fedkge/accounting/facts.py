"""The facts of a promise, each with a type. A ledger line holds their codes; `report.promise_words` has the sentences.

Guarantee: decoding is total. A value that no code stands for, a value of another type, or a fact that this version does
not know is an error. A fact that is missing stays missing (None), and `validity.faults` then says: not private.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e300)]
Whole: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]
Word: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2_000)]
Scalar: TypeAlias = str | float | int | bool | None


class Neighbours(StrEnum):
    """Which two graphs no observer can tell apart: they differ by this much."""

    ADD_OR_REMOVE_TRIPLE = "add-or-remove-one-triple"
    REPLACE_TRIPLE = "replace-one-triple"

    @property
    def unit(self) -> str:
        """What the two graphs differ in."""
        return "triple"


class Payment(StrEnum):
    """What a charge of a round means for the budget."""

    EACH_ROUND = "each-round"
    """Every round pays for itself. What was spent holds for the planned number of rounds."""
    FIRST_ROUND = "first-round"
    """The first round pays for everything. Any number of rounds is covered."""
    WHOLE_BUDGET = "whole-budget"
    """Noise was chosen from earlier releases. Only the whole budget is a guarantee, from the first charge on."""


class NameRule(StrEnum):
    """Where entity names come from."""

    FROM_TRIPLES = "from-triples"
    LISTED = "listed"
    THRESHOLD = "threshold"


class NegativeRule(StrEnum):
    """Whether negatives are part of the clipped gradient, or drawn from public lists."""

    INSIDE = "inside"
    PUBLIC = "public"


class _Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    """One of several kinds of a fact; the kind stands in the line."""


class SecretNoise(_Fact, frozen=True, tag="operating-system"):
    """The operating system's generator, not kept."""


class SeededNoise(_Fact, frozen=True, tag="research-seed"):
    """A research seed: anyone who knows it can remove the noise."""

    seed: int


class RandomStart(_Fact, frozen=True, tag="random"):
    """Random start vectors."""


class PublicStart(_Fact, frozen=True, tag="public-vectors"):
    """Start vectors that the data's owner calls public."""

    vectors: Word


class CountFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Noisy counts, released once before noisy steps."""

    profile_scale: Positive
    typed_scale: Positive
    types: Whole


class Advance(_Fact, frozen=True, tag="advance"):
    """Nothing but what is paid once before the promise. Only a provisional promise has this mechanism."""


class NoisySteps(_Fact, frozen=True, tag="noisy-steps"):
    """Clipped gradients of Poisson samples with Gaussian noise; before them perhaps counts."""

    steps_per_round: Whole
    batch: Whole
    clip: Positive
    row_clip: Positive | None
    selection: Word
    negatives: NegativeRule
    schedule: Word
    validation_every: Annotated[int, Meta(ge=0)] | None = None
    """After how many rounds noise may fall; None where noise does not follow validation."""
    counts: CountFacts | None = None


class NoisyCopy(_Fact, frozen=True, tag="noisy-copy"):
    """Noisy counts and randomised responses, once; rounds train on them alone."""

    count_scale: Positive
    response_epsilon: Positive


class Described(_Fact, frozen=True, tag="described"):
    """A mechanism of an extension, in its own words: its name, its proof, and the settings that a reader should know.

    It is private only if a proof is named, and if sound accountants know all events that it charges.
    """

    name: Word
    proof: Word
    settings: tuple[tuple[str, Scalar], ...] = ()


Mechanism: TypeAlias = Advance | NoisySteps | NoisyCopy | Described


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was planned before the first round: the budget is calibrated to it."""

    payment: Payment
    rounds: Whole
    triples: Whole
    """The number of triples that others may know."""
    noise: Positive
    """A noise multiplier, or the factor that stretches the noise of a copy."""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """What a reader of a promise must know besides its numbers. None: the promise does not say.

    >>> facts = Facts(noise_source=SeededNoise(seed=7), names=NameRule.LISTED)
    >>> facts.record()
    {'noise-source': {'type': 'research-seed', 'seed': 7}, 'names': 'listed'}
    >>> Facts.of_record(facts.record()) == facts
    True
    """

    data: str = ""
    """A keyed digest by which its holder recognises runs on the same triples; blank for none."""
    defence: Word | None = None
    mechanism: Mechanism | None = None
    plan: Plan | None = None
    noise_source: SecretNoise | SeededNoise | None = None
    names: NameRule | None = None
    start: RandomStart | PublicStart | None = None

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON; what is missing has no key."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Facts:
        """The facts that `record` was made from; a ValueError where it holds anything else.

        >>> Facts.of_record({"names": "invented"})
        Traceback (most recent call last):
        ValueError: Invalid enum value 'invented' - at `$.names`
        """
        try:
            return msgspec.convert(record, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error


UNKNOWN = Facts()
"""Nothing is said: nothing is private."""
