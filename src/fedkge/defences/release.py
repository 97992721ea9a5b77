"""What a client releases once and keeps with its model: noisy counts, a noisy copy of its graph, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.numbers import percent
from fedkge.defences.counts.denoising import Profile
from fedkge.graph import Triples
from fedkge.models.embedding import Prior

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Numbers: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.integer[Any]]
"""For each new number the old one."""


@dataclass(frozen=True, slots=True)
class Holding:
    """How much of a client's graph a release holds, estimated from what was released and from nothing else.

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


class Release(Protocol):
    """What was released once. It is paid for, so whatever is computed from it costs no more.

    A class that names this one as its base gets the answers of a release that nobody audits by itself.
    """

    entities: int
    relations: int

    @property
    def profile_expected(self) -> Profile:
        """Expected counts by relation and side, as far as the release tells them."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as plain arrays, for a client's own file."""
        ...

    def model_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that belong into a model: all that scores need, and no more."""
        return self.arrays()

    def renumbered(self, entities: Rows, relations: Rows) -> Release:
        """What belongs into a model, under other numbers: entity i is the old `entities[i]`, relation k likewise."""
        ...

    def prior(self, weight: float) -> Prior:
        """What it adds to a model's scores."""
        ...

    def likelihood_ratios(self, known: Triples, candidates: Triples) -> Numbers | None:  # noqa: ARG002
        """The auditor's score: for each candidate how much likelier the release is with it than without (log), all
        `known` triples being there. None where the release cannot be scored by itself.
        """
        return None

    def asked(self, candidates: Triples) -> NDArray[np.bool_] | None:  # noqa: ARG002
        """Which of these triples the client was asked about; None where nobody is asked."""
        return None

    def holding(self, triples: int) -> Holding | None:  # noqa: ARG002
        """How much of a graph of this public size it holds; None where that cannot be told."""
        return None
