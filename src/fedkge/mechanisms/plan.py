"""One private step as one value: its sampler, clip, noise and price come from it and cannot disagree."""

from __future__ import annotations

from dataclasses import dataclass, field

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.clipping import Clip
from fedkge.mechanisms.dense import Dense
from fedkge.mechanisms.events import Charge, Event
from fedkge.mechanisms.sampling import PoissonSampling
from fedkge.mechanisms.selection import Selection


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Sample, clip, select rows, and release their sum with noise of `deviation` per number.

    `batch` is the expected batch, by which the released sum is divided; `triples` is the public size of the data, which
    need not be the true one. `multiplier` is the noise on gradients over the clip, selection not counted.

    Guarantee: a step that draws from `sampling`, sums by `clip`, chooses by `selection` and adds noise of `deviation`
    to the chosen entity rows and to all relation rows costs no more than `event()`. Proofs: docs/proofs/dense.md,
    adafest.md and ptr.md for the step, composition.md for many; `ptr-published` has none.

    >>> plan = StepPlan(batch=100, triples=1000, clip=Clip(joint=0.5), multiplier=2.0)
    >>> plan.rate, plan.deviation, plan.charge(steps=3)
    (0.1, 1.0, Charge(event=SampledGaussian(rate=0.1, multiplier=2.0), steps=3))
    """

    batch: int
    triples: int
    clip: Clip
    multiplier: float
    selection: Selection = field(default_factory=Dense)

    def __post_init__(self) -> None:
        if min(self.batch, self.triples) < 1:
            raise PrivacyError(f"expected a batch and a public size of at least 1, got {self.batch}, {self.triples}")
        if not 0 < self.multiplier < float("inf"):
            raise PrivacyError(f"expected a positive noise multiplier, got {self.multiplier}")
        theirs, ours = self.selection.made_for, (self.clip, self.batch)
        if theirs is not None and theirs != ours:
            raise PrivacyError(f"expected a selection for the plan's clip and batch {ours}, got {theirs}")

    @property
    def rate(self) -> float:
        """How probable it is that a triple is in the batch."""
        return min(1.0, self.batch / self.triples)

    @property
    def sampling(self) -> PoissonSampling:
        """Where batches come from."""
        return PoissonSampling(self.rate)

    @property
    def deviation(self) -> float:
        """The deviation of the noise on each released number of the summed gradient: multiplier times sensitivity."""
        return self.multiplier * self.clip.sensitivity

    def event(self) -> Event:
        """What one step costs."""
        return self.selection.event(self.rate, self.multiplier)

    def charge(self, steps: int) -> Charge:
        """The cost of this many steps."""
        return Charge(self.event(), steps)
