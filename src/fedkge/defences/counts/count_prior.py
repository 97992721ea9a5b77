"""A score for every answer from noisy counts alone: how probable is it, given the relation and the other end's type?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.defences.counts.denoising import Posterior, Profile
from fedkge.graph import HEAD, RELATION, TAIL, Side, Triples

if TYPE_CHECKING:
    from fedkge.defences.counts.released import ReleasedCounts

UNSEEN = 0.003
"""Added to every expected count: a little for answers that nothing is known about."""


@short_repr()
@dataclass(frozen=True, eq=False)
class CountPrior:
    """`weight` times the log-probability of an answer, by released counts; what an embedding's score is added to.

    All of it is computed from `released`, so it is post-processing. Expected are n(type, relation) * P(answer |
    relation) triples, both from the profile; the typed table then says which answers this type has more often.

    >>> from fedkge.mechanisms.noise import NoiseSource
    >>> from fedkge.defences.counts.released import CountPlan, ReleasedCounts
    >>> triples = np.array([[0, 0, 2], [1, 0, 2], [2, 0, 1]], np.int32)
    >>> plan = CountPlan(profile_scale=0.1, typed_scale=0.1, types=1)
    >>> prior = CountPrior(ReleasedCounts.draw(triples, 3, 1, plan, NoiseSource.research(1)), weight=1.0)
    >>> scores = np.zeros((1, 3), np.float32)
    >>> prior.add_scores(triples[:1], "tail", scores)
    >>> np.exp(scores, dtype=np.float64).round(2).tolist()
    [[0.0, 0.33, 0.67]]
    """

    released: ReleasedCounts
    weight: float
    posterior: Posterior = field(init=False)

    def __post_init__(self) -> None:
        typed = self.released.typed
        object.__setattr__(self, "posterior", Posterior.of(typed.scale, typed.threshold))

    @cached_property
    def profile(self) -> Profile:
        """The profile without its noise, as well as that can be told."""
        return Profile.of(self.released.profile, self.released.entities)

    @cached_property
    def _by_type(self) -> NDArray[np.float64]:
        """Expected triples for each row of the profile (relation and asked side) and type of the other end."""
        counts, types = self.released, self.released.types
        sizes = np.bincount(types, minlength=counts.number_of_types).astype(np.float64)
        totals = np.empty((2 * counts.relations, counts.number_of_types))
        for number, row in enumerate(self.profile.rows):
            other = (number + counts.relations) % (2 * counts.relations)  # heads where tails are asked
            seen = np.bincount(types[row.entities], row.means - row.rest, counts.number_of_types)
            totals[other] = np.maximum(sizes * row.rest + seen, 1e-9)
        return totals

    def add_scores(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Add to `out[i, j]` the score of triple i after its `side` became entity j."""
        for (row, kind), where in self._questions(triples, side):
            out[where] += self._scores(row, kind)

    def of_triples(self, triples: Triples, side: Side) -> NDArray[np.float32]:
        """The score of each triple's own answer."""
        scores, answers = np.empty(len(triples), np.float32), triples[:, TAIL if side == "tail" else HEAD]
        for (row, kind), where in self._questions(triples, side):
            scores[where] = self._scores(row, kind)[answers[where]]
        return scores

    def _questions(self, triples: Triples, side: Side) -> list[tuple[tuple[int, int], NDArray[np.int64]]]:
        """The different (row of the profile, type of what is given), each with the triples that ask it."""
        counts = self.released
        rows = triples[:, RELATION].astype(np.int64) + (0 if side == "tail" else counts.relations)
        keys = rows * counts.number_of_types + counts.types[triples[:, HEAD if side == "tail" else TAIL]]
        different, which = np.unique(keys, return_inverse=True)
        pairs = [divmod(key, counts.number_of_types) for key in different.tolist()]
        return [(pair, np.flatnonzero(which == number)) for number, pair in enumerate(pairs)]

    def _scores(self, row: int, kind: int) -> NDArray[np.float32]:
        typed, entities = self.released.typed, self.released.entities
        popular = self.profile.rows[row].full(entities) + UNSEEN
        rates = popular * (self._by_type[row, kind] / popular.sum())
        expected = self.posterior.below(rates)
        first = (row * self.released.number_of_types + kind) * entities
        begin, end = np.searchsorted(typed.keys, (first, first + entities))
        seen = typed.keys[begin:end] - first
        expected[seen] = self.posterior.seen(typed.values[begin:end], rates[seen])
        expected += 1e-9
        return np.asarray(self.weight * np.log(expected / expected.sum()), np.float32)
