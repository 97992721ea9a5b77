"""Local training: one step of one model on one batch, and the epochs made of such steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedkge.base.errors import NumericalError
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.models.embedding import Embedding
from fedkge.models.kernel import kernel
from fedkge.models.loss import self_adversarial
from fedkge.models.negatives import Negatives
from fedkge.models.optimisers import Optimiser, make_optimiser
from fedkge.models.scorer import Known
from fedkge.models.tables import Gradients, Ids, RowGradient, Table


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How a model learns; defaults as in the paper."""

    batch_size: int = 64
    learning_rate: float = 1e-3
    optimiser: str = "lazy-adam"
    temperature: float = 1.0
    regularisation: float = 0.0
    """Weight of the squared norm of the rows of each positive triple."""


class Trainer:
    """Trains one embedding in place, on one thread, without holding the GIL in its kernels.

    Everything random comes from the generator that is passed to `epoch` or `step`.
    """

    def __init__(self, embedding: Embedding, negatives: Negatives, options: TrainingOptions) -> None:
        self.embedding = embedding
        self.negatives = negatives
        self.options = options
        self.steps = 0
        tables, rate = embedding.tables, options.learning_rate
        self.entity_optimiser: Optimiser = make_optimiser(options.optimiser, tables.entities, rate)
        self.relation_optimiser: Optimiser = make_optimiser(options.optimiser, tables.relations, rate)
        groups = -(-options.batch_size // negatives.group_size)
        entity_rows = 2 * options.batch_size + groups * negatives.count
        self._gradients = Gradients(
            RowGradient.of(tables.entities, entity_rows),
            RowGradient.of(tables.relations, options.batch_size),
        )

    def reset_optimisers(self) -> None:
        """Forget all optimiser state, as FedE does at the start of each round; all of it begins at zero."""
        for optimiser in (self.entity_optimiser, self.relation_optimiser):
            for array in optimiser.state().values():
                array.fill(0)

    def set_rate(self, rate: float) -> None:
        """Learn at this rate from now on; optimiser state stays."""
        self.entity_optimiser.rate = self.relation_optimiser.rate = rate

    def epoch(
        self, triples: Triples, generator: np.random.Generator, advance: Callable[[int], None] = lambda _: None
    ) -> float:
        """Go once over all triples in random order; returns the mean loss. `advance` hears of triples done."""
        total = 0.0
        for batch in batches(triples, self.options.batch_size, generator):
            total += self.step(batch, generator) * len(batch)
            advance(len(batch))
        return total / max(1, len(triples))

    def step(self, batch: Triples, generator: np.random.Generator) -> float:
        """One gradient step; returns the batch's loss before it."""
        loss = self.gradient(batch, generator)
        if not np.isfinite(loss):
            self._gradients.clear()
            raise NumericalError(
                f"the loss became {loss} at step {self.steps}: "
                f"lower the learning rate (now {self.options.learning_rate})"
            )
        tables = self.embedding.tables
        self.entity_optimiser.step(tables.entities, self._gradients.entities)
        self.relation_optimiser.step(tables.relations, self._gradients.relations)
        self._gradients.clear()
        self.steps += 1
        return loss

    def gradient(self, batch: Triples, generator: np.random.Generator) -> float:
        """Leave the gradient of the batch's mean loss in the row gradients; returns the loss."""
        side = self.negatives.side(self.steps)
        known = Known.of(batch, side)
        targets = np.ascontiguousarray(batch[:, TAIL if side == "tail" else HEAD]).reshape(-1, 1)
        drawn = self.negatives.draw(batch, side, generator)
        into = self._gradients
        for ids in (known.anchors, targets.ravel(), drawn.ravel()):
            into.entities.touch(ids)
        into.relations.touch(known.relations)
        loss = self._score_and_carry_back(known, targets, drawn, into)
        if self.options.regularisation:
            loss += self._regularise(batch, into)
        return loss

    def _score_and_carry_back(self, known: Known, targets: Ids, drawn: Ids, into: Gradients) -> float:
        embedding, entities = self.embedding, self.embedding.tables.entities
        scorer, comparison = embedding.scorer, embedding.scorer.comparison
        queries = scorer.queries(embedding.tables, known)
        positive = np.empty((len(queries), 1), dtype=entities.dtype)
        negative = np.empty((len(queries), drawn.shape[1]), dtype=entities.dtype)
        group = self.negatives.group_size
        comparison.against_rows(queries, entities, targets, 1, embedding.offset, positive)
        comparison.against_rows(queries, entities, drawn, group, embedding.offset, negative)
        loss = self_adversarial(positive[:, 0], negative, self.options.temperature)
        slope = np.zeros_like(queries)
        rows = into.entities
        backward = comparison.backward
        backward(queries, entities, targets, 1, loss.positive.reshape(-1, 1), slope, rows.slots, rows.values)
        backward(queries, entities, drawn, group, loss.negative, slope, rows.slots, rows.values)
        scorer.backward(embedding.tables, known, slope, into)
        return loss.loss

    def _regularise(self, batch: Triples, into: Gradients) -> float:
        tables, weight = self.embedding.tables, self.options.regularisation / len(batch)
        total = 0.0
        for table, gradient, column in (
            (tables.entities, into.entities, HEAD),
            (tables.relations, into.relations, RELATION),
            (tables.entities, into.entities, TAIL),
        ):
            total += _add_squared_norm(table, np.ascontiguousarray(batch[:, column]), weight, gradient)
        return total


@kernel
def _shrink(table, ids, weight, slots, values):
    total = 0.0
    for i in range(ids.shape[0]):
        for k in range(table.shape[1]):
            number = table[ids[i], k]
            values[slots[ids[i]], k] += 2 * weight * number
            total += number * number
    return weight * total


def _add_squared_norm(table: Table, ids: Ids, weight: float, gradient: RowGradient) -> float:
    return float(_shrink(table, ids, weight, gradient.slots, gradient.values))


def batches(triples: Triples, size: int, generator: np.random.Generator) -> Iterator[Triples]:
    """All triples once, in random order, in batches of `size` (the last may be smaller).

    >>> [len(batch) for batch in batches(np.zeros((5, 3), np.int32), 2, np.random.default_rng(0))]
    [2, 2, 1]
    """
    order = generator.permutation(len(triples))
    for first in range(0, len(triples), size):
        yield triples[order[first : first + size]]
