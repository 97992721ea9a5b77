"""How much of a client's graph its noisy copy holds, estimated from what was released and from nothing else.

Guarantee: `holding_of` reads the copy (released, paid for) and the public number of triples. It is post-processing: for
neighbouring graphs with the same releases it returns the same, so the estimate may stand in a shareable report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedkge.base.numbers import percent
from fedkge.defences.noisy_copy.noisy_copy import BELIEVED, NoisyCopy, truths

REPRODUCE = "python -m benchmarks holds"


@dataclass(frozen=True, slots=True)
class Measured:
    """How much of a public graph, taken as one client, the copies of several seeds held on average."""

    graph: str
    triples: int
    epsilon: float
    answers: float
    """The answers' share of epsilon: what decides how much is believed."""
    share: float
    precision: float


MEASURED = (
    Measured("codex-s", 32_888, 2.0, 0.1, 0.032, 0.73),
    Measured("FB15k-237", 272_115, 2.0, 0.1, 0.007, 0.76),
    Measured("codex-s", 32_888, 4.0, 0.2, 0.052, 0.76),
    Measured("FB15k-237", 272_115, 4.0, 0.2, 0.017, 0.77),
    Measured("codex-s", 32_888, 5.0, 3.75, 0.751, 0.83),
    Measured("FB15k-237", 272_115, 5.0, 3.75, 0.315, 0.81),
    Measured("codex-s", 32_888, 8.0, 6.0, 0.954, 0.94),
    Measured("FB15k-237", 272_115, 8.0, 6.0, 0.606, 0.91),
    Measured("codex-s", 32_888, 16.0, 12.0, 0.998, 1.0),
    Measured("FB15k-237", 272_115, 16.0, 12.0, 0.690, 1.0),
)
"""By `REPRODUCE`; `benchmarks/results/holds.json` has the single seeds, and a test compares the two."""


def measured_elsewhere(answers: float) -> str:
    """How much copies of other graphs held whose answers had about this epsilon: all there is before one is drawn.

    >>> measured_elsewhere(5.9)[:107]
    'Known only once the copy is drawn. On other graphs (one client, epsilon 8, answers of epsilon 6): 95.4 % of'
    """
    nearest = min(MEASURED, key=lambda each: abs(math.log(each.answers / answers))).answers
    those = [each for each in MEASURED if each.answers == nearest]
    held = "; ".join(
        f"{percent(each.share)} of {each.graph}'s triples with precision {each.precision:.2f}" for each in those
    )
    return (
        f"Known only once the copy is drawn. On other graphs (one client, epsilon {those[0].epsilon:g}, answers of "
        f"epsilon {nearest:g}): {held}. Your graph may differ ({REPRODUCE})."
    )


@dataclass(frozen=True, slots=True)
class Holding:
    """What a copy believes, and how much of it is expected to be true.

    >>> Holding(believed=100, true=91.0, triples=130).words
    'The copy believes 100 triples. About 91 of them are true (precision 0.91): 70 % of about 130 triples.'
    """

    believed: int
    """Answers that are more likely true than not, by the counts."""
    true: float
    """The number of true triples to be expected among them."""
    triples: int
    """The client's public number of triples."""

    @property
    def precision(self) -> float | None:
        """The share of what is believed that is true; None where nothing is believed."""
        return self.true / self.believed if self.believed else None

    @property
    def share(self) -> float:
        """The share of the graph that is among what is believed."""
        return min(1.0, self.true / max(1, self.triples))

    @property
    def words(self) -> str:
        """The estimate in plain words.

        >>> Holding(0, 0.0, 130).words
        'The copy believes no triple: at this epsilon no answer is more likely true than false. Only counts are left.'
        """
        if self.precision is None:
            return (
                "The copy believes no triple: at this epsilon no answer is more likely true than false. Only counts "
                "are left."
            )
        return (
            f"The copy believes {self.believed:,} triples. About {self.true:,.0f} of them are true (precision "
            f"{self.precision:.2f}): {percent(self.share)} of about {self.triples:,} triples."
        )


def holding_of(copy: NoisyCopy, triples: int) -> Holding:
    """The estimate for a copy that still has its answers, of a client with this public number of triples.

    >>> from fedkge.defences.noisy_copy import CopyPlan
    >>> from fedkge.mechanisms.noise import NoiseSource
    >>> held = np.array([[0, 0, 2], [1, 0, 2], [3, 0, 2]], np.int32)
    >>> copy = NoisyCopy.draw(held, 4, 1, CopyPlan(profile_scale=0.1, epsilon=20.0), NoiseSource.research(1))
    >>> found = holding_of(copy, triples=3)
    >>> found.believed, round(found.true, 3), found.share > 0.99
    (3, 3.0, True)
    """
    chances = truths(copy.rates, copy.epsilon)
    believed = chances >= BELIEVED
    return Holding(int(np.count_nonzero(believed)), float(chances[believed].sum()), triples)
