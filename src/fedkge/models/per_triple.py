"""The gradient of each triple apart: what must be known before one triple's influence can be bounded.

A chunk of triples is laid out so that each triple has rows of its own, even where it shares an entity with others: a
copy of the head's row, of the tail's and of each corrupting entity's, every entity once per triple (a self-loop, or a
negative that equals an end, is summed in one place). The same kernels that train without privacy then run on these
copies, and what they leave is one gradient per triple.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.graph import RELATION, Side, Triples
from fedkge.models.embedding import Embedding
from fedkge.models.kernel import kernel
from fedkge.models.loss import triple_slopes
from fedkge.models.scorer import Known
from fedkge.models.tables import Gradients, Ids, RowGradient, Table, Tables


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class TripleGradients:
    """Triple i owns the rows `starts[i]` to `starts[i + 1]` of `entities`, all of different entities (`entity_rows`),
    and row i of `relations` (of relation `relation_rows[i]`).
    """

    entities: Table
    entity_rows: Ids
    starts: NDArray[np.int64]
    relations: Table
    relation_rows: Ids


@dataclass(frozen=True, slots=True)
class TripleLoss:
    """The loss of one triple: the sum over `sides` of the self-adversarial loss; without sides, of its score alone."""

    sides: tuple[Side, ...] = ("tail", "head")
    temperature: float = 1.0


@kernel
def _lay_out(triples, drawn, place, stamp, stamped, rows, starts, ends, local):
    """Give each triple its rows; returns how many rows there are. `place` and `stamp` are scratch, one per entity;
    `stamped` tells how many triples the stamps have seen before.
    """
    count = 0
    for i in range(triples.shape[0]):
        starts[i] = count
        for j in range(2 + drawn.shape[1]):
            entity = triples[i, 0] if j == 0 else (triples[i, 2] if j == 1 else drawn[i, j - 2])
            if stamp[entity] != stamped + i:
                stamp[entity] = stamped + i
                place[entity] = count
                rows[count] = entity
                count += 1
            if j < 2:
                ends[i, j] = place[entity]
            else:
                local[i, j - 2] = place[entity]
    starts[triples.shape[0]] = count
    return count


class Differentiator:
    """Computes gradients triple by triple for chunks of at most `capacity` triples with `negatives` per side.

    >>> from fedkge.models.transe import TransE
    >>> tables = Tables(np.array([[0.0], [3.0]], np.float32), np.array([[1.0]], np.float32))
    >>> per_triple = Differentiator(Embedding(TransE(), tables, margin=2.0), TripleLoss(sides=()), 0, 8)
    >>> gradients = per_triple.gradients(np.array([[0, 0, 1], [1, 0, 1]], np.int32), np.empty((2, 0), np.int32))
    >>> gradients.entity_rows.tolist(), gradients.starts.tolist(), gradients.entities.ravel().tolist()
    ([0, 1, 1], [0, 2, 3], [-0.5, 0.5, 0.0])
    """

    def __init__(self, embedding: Embedding, loss: TripleLoss, negatives: int, capacity: int) -> None:
        self._embedding = embedding
        self._loss = loss
        self._negatives = negatives
        self.capacity = capacity
        entities = embedding.tables.entities
        rows = capacity * (2 + len(loss.sides) * negatives)
        self._place = np.zeros(len(entities), np.int32)
        self._stamp, self._stamped = np.full(len(entities), -1, np.int64), 0
        self._rows = np.zeros(rows, np.int32)
        self._gradient = np.zeros((rows, entities.shape[1]), entities.dtype)
        self._identity = np.arange(rows, dtype=np.int32)
        self._into = Gradients(RowGradient(0, 0, 0), RowGradient(0, 0, 0))
        self._relation_gradient = np.zeros((capacity, embedding.tables.relations.shape[1]), entities.dtype)

    @property
    def corruptions(self) -> int:
        """How many corrupting entities each triple needs."""
        return len(self._loss.sides) * self._negatives

    def gradients(self, triples: Triples, drawn: Ids) -> TripleGradients:
        """The gradient of each triple's loss; `drawn` holds its corrupting entities, side after side.

        What is returned is valid until the next call.
        """
        count = len(triples)
        starts = np.zeros(count + 1, np.int64)
        ends, local = np.zeros((count, 2), np.int32), np.zeros(drawn.shape, np.int32)
        total = _lay_out(triples, drawn, self._place, self._stamp, self._stamped, self._rows, starts, ends, local)
        self._stamped += count
        rows = self._rows[:total]
        relation_rows = np.ascontiguousarray(triples[:, RELATION])
        tables = self._embedding.tables
        own = Tables(tables.entities[rows], tables.relations[relation_rows])
        into = self._zeroed(total, count)
        self._carry_back(own, ends, local, into)
        return TripleGradients(into.entities.values, rows, starts, into.relations.values, relation_rows)

    def _zeroed(self, rows: int, triples: int) -> Gradients:
        """Gradients in which every local row and every triple's relation has the slot of its own number."""
        entities, relations = self._into.entities, self._into.relations
        entities.slots, entities.values = self._identity[:rows], self._gradient[:rows]
        relations.slots, relations.values = self._identity[:triples], self._relation_gradient[:triples]
        entities.values.fill(0)
        relations.values.fill(0)
        return self._into

    def _carry_back(self, own: Tables, ends: Ids, local: Ids, into: Gradients) -> None:
        if not self._loss.sides:
            return self._carry_back_side(own, "tail", ends, np.empty((len(ends), 0), np.int32), into)
        for number, side in enumerate(self._loss.sides):
            drawn = np.ascontiguousarray(local[:, number * self._negatives : (number + 1) * self._negatives])
            self._carry_back_side(own, side, ends, drawn, into)
        return None

    def _carry_back_side(self, own: Tables, side: Side, ends: Ids, drawn: Ids, into: Gradients) -> None:
        scorer, offset = self._embedding.scorer, self._embedding.offset
        comparison, entities = scorer.comparison, own.entities
        anchor, target = (0, 1) if side == "tail" else (1, 0)
        known = Known(np.ascontiguousarray(ends[:, anchor]), self._identity[: len(ends)], side)
        targets = np.ascontiguousarray(ends[:, target]).reshape(-1, 1)
        queries = scorer.queries(own, known)
        positive = np.empty((len(ends), 1), entities.dtype)
        comparison.against_rows(queries, entities, targets, 1, offset, positive)
        negative = np.empty(drawn.shape, entities.dtype)
        comparison.against_rows(queries, entities, drawn, 1, offset, negative)
        pull, push = triple_slopes(positive[:, 0], negative, self._loss.temperature)
        slope, rows = np.zeros_like(queries), into.entities
        comparison.backward(queries, entities, drawn, 1, push, slope, rows.slots, rows.values)
        comparison.backward(queries, entities, targets, 1, pull.reshape(-1, 1), slope, rows.slots, rows.values)
        scorer.backward(own, known, slope, into)
