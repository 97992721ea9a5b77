"""Negative triples from public lists: they see no private triple, so their gradients need no noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.noise import NoiseSource


@dataclass(frozen=True, slots=True, eq=False)
class PublicNegatives:
    """Draws (head, relation, tail) from the public numbers of entities and relations.

    `pairs` are the (head, relation) pairs, and `tail_pairs` the (tail, relation) pairs, of a graph that everybody
    knows; the missing entity is uniform. With both, each serves about half of the draws; with none, all is uniform.

    Guarantees:
        A draw is a function of public values and coins. It is never filtered by private triples, so a drawn negative
        may be a true triple, here or elsewhere; filtering would tell which ones are.

    >>> PublicNegatives(entities=5, relations=2).draw(3, NoiseSource.research(0)).shape
    (3, 3)
    """

    entities: int
    relations: int
    pairs: NDArray[np.int32] | None = None
    tail_pairs: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        if min(self.entities, self.relations) < 1:
            raise ConfigurationError("expected at least one entity and one relation for public negatives")
        for pairs in (self.pairs, self.tail_pairs):
            if pairs is None:
                continue
            if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
                raise ConfigurationError(f"expected public pairs of shape (count, 2), got {pairs.shape}")
            if (pairs < 0).any() or (pairs >= [self.entities, self.relations]).any():
                raise ConfigurationError(f"expected pairs of {self.entities} entities and {self.relations} relations")

    @classmethod
    def of_graph(cls, triples: NDArray[np.int32], entities: int, relations: int) -> PublicNegatives:
        """Negatives that keep one end and the relation of a triple of a public graph, half of them on each side.

        >>> negatives = PublicNegatives.of_graph(np.array([[4, 1, 3]], np.int32), entities=5, relations=2)
        >>> drawn = negatives.draw(50, NoiseSource.research(0))
        >>> bool(((drawn[:, 0] == 4) | (drawn[:, 2] == 3)).all()), set(drawn[:, 1].tolist())
        (True, {1})
        """
        return cls(entities, relations, triples[:, [0, 1]], triples[:, [2, 1]])

    def draw(self, count: int, source: NoiseSource | np.random.Generator) -> NDArray[np.int32]:
        """So many negatives, of shape (count, 3)."""
        generator = source.generator if isinstance(source, NoiseSource) else source
        drawn = np.empty((count, 3), dtype=np.int32)
        drawn[:, ::2] = generator.integers(self.entities, size=(count, 2), dtype=np.int32)
        drawn[:, 1] = generator.integers(self.relations, size=count, dtype=np.int32)
        if self.pairs is None and self.tail_pairs is None:
            return drawn
        keep_head = np.full(count, self.tail_pairs is None)
        if self.pairs is not None and self.tail_pairs is not None:
            keep_head = generator.integers(2, size=count) == 0
        for pairs, entity_column, these in ((self.pairs, 0, keep_head), (self.tail_pairs, 2, ~keep_head)):
            if pairs is not None:
                chosen = pairs[generator.integers(len(pairs), size=int(these.sum()))]
                drawn[these, entity_column], drawn[these, 1] = chosen[:, 0], chosen[:, 1]
        return drawn
