"""How much of a client's graph its noisy copy holds, estimated from what was released and from nothing else.

Guarantee: `holding_of` reads the copy (released, paid for) and the public number of triples. It is post-processing: for
neighbouring graphs with the same releases it returns the same, so the estimate may stand in a shareable report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkge.copies.noisy_copy import BELIEVED, NoisyCopy, truths


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
            f"{self.precision:.2f}): {100 * self.share:.0f} % of about {self.triples:,} triples."
        )


def holding_of(copy: NoisyCopy, triples: int) -> Holding:
    """The estimate for a copy that still has its answers, of a client with this public number of triples.

    >>> from fedkge.copies import CopyPlan
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
