"""The popularity control: rank an answer only by how often it occurs with the relation on that side in train.

It knows nothing about the entity that is given, so what a model adds to it is what the model has learned beyond
frequencies. With Laplace noise it is also what a very small privacy budget buys: a model that spends more must beat it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError
from fedkge.base.short_repr import short_repr
from fedkge.evaluation.queries import columns
from fedkge.graph import RELATION, Side, Triples

L1_SENSITIVITY = 2.0
"""Adding or removing one triple changes one tail count and one head count, each by 1."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """How often entities occur on one side of relations: `counts[k]` times for the key relation * entities + entity."""

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, triples: Triples, side: Side, entities: int) -> _Counts:
        _, answer = columns(side)
        keys, counts = np.unique(
            triples[:, RELATION].astype(np.int64) * entities + triples[:, answer], return_counts=True
        )
        return cls(keys, counts.astype(np.int64))

    def row(self, relation: int, entities: int) -> NDArray[np.float64]:
        """The counts of all entities with one relation, zeros included."""
        begin, end = np.searchsorted(self.keys, [relation * entities, (relation + 1) * entities])
        row = np.zeros(entities, dtype=np.float64)
        row[self.keys[begin:end] - relation * entities] = self.counts[begin:end]
        return row


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Popularity:
    """A candidate scorer from counts: exact, or with Laplace noise for `epsilon` in total.

    The noisy table releases, for every relation and side, the counts of all entities, zeros included: noise goes on
    every cell, or the zeros themselves would tell who never occurs. One triple more or less (the vocabularies are
    public) changes two cells by 1, so noise of scale 2 / epsilon makes the whole table, both sides together,
    epsilon-differentially private in exact arithmetic. This is a control for research: its noise comes from a
    seedable generator and is floating-point Laplace; it is not a mechanism to protect anyone.

    Noise is drawn when a relation is asked for, always the same for the same relation and side; each thread keeps the
    last row it made and nothing else.

    >>> train = np.array([[0, 0, 2], [1, 0, 2], [2, 0, 1]], dtype=np.int32)
    >>> popularity, scores = Popularity.count(train, entities=3), np.empty((1, 3), dtype=np.float32)
    >>> popularity.score(train[:1], "tail", scores)
    >>> scores.tolist()
    [[0.0, 1.0, 2.0]]
    """

    entities: int
    epsilon: float | None
    tail: _Counts
    head: _Counts
    noise_key: tuple[int, ...] = ()
    last: threading.local = field(default_factory=threading.local, repr=False)

    @classmethod
    def count(
        cls,
        train: Triples,
        entities: int,
        *,
        epsilon: float | None = None,
        generator: np.random.Generator | None = None,
    ) -> Popularity:
        """Count the train triples; `epsilon` asks for noise and then needs a `generator` to key it."""
        noise_key: tuple[int, ...] = ()
        if epsilon is not None:
            if not epsilon > 0:
                raise ConfigurationError(
                    f"epsilon: expected a positive number, or None for exact counts; got {epsilon}"
                )
            if generator is None:
                raise ConfigurationError("noisy counts need a random generator: pass generator=np.random.default_rng()")
            noise_key = tuple(generator.integers(0, 2**32, size=4).tolist())
        return cls(
            entities=entities,
            epsilon=epsilon,
            tail=_Counts.of(train, "tail", entities),
            head=_Counts.of(train, "head", entities),
            noise_key=noise_key,
        )

    @property
    def candidates(self) -> int:
        """All entities."""
        return self.entities

    def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Fill `out[i]` with the counts for the relation of triple i; the given entity plays no part."""
        for i, relation in enumerate(triples[:, RELATION].tolist()):
            out[i] = self.row(relation, side)

    def row(self, relation: int, side: Side) -> NDArray[np.float32]:
        """The (noisy) counts of all entities on one side of one relation."""
        if getattr(self.last, "key", None) == (relation, side):
            kept: NDArray[np.float32] = self.last.row
            return kept
        counts = self.tail if side == "tail" else self.head
        row = counts.row(relation, self.entities)
        if self.epsilon is not None:
            place = (relation, 0 if side == "tail" else 1)
            generator = np.random.default_rng(np.random.SeedSequence(self.noise_key, spawn_key=place))
            row += generator.laplace(scale=L1_SENSITIVITY / self.epsilon, size=self.entities)
        self.last.key, self.last.row = (relation, side), row.astype(np.float32)
        return self.last.row  # type: ignore[no-any-return]
