"""Local training under a defence: steps whose every influence on the tables is clipped, noised and paid for.

What a step reads of the private triples passes through `plan.clip` and noise of `plan.deviation` before it reaches a
table, entities and relations alike; the rest (dividing by the public batch size, the optimiser, public negatives) is
post-processing. Nothing here is logged or returned that depends on the triples, but for the test counter of `ptr`,
which is released with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedkge.graph import HEAD, RELATION, TAIL, Side, Triples
from fedkge.mechanisms.clipping import PerTriple
from fedkge.mechanisms.lazy import LazyNoise
from fedkge.mechanisms.negatives import PublicNegatives
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.plan import StepPlan
from fedkge.mechanisms.selection import Selected, Touched
from fedkge.models.loss import negative_slopes
from fedkge.models.per_triple import Differentiator, TripleLoss
from fedkge.models.scorer import Known
from fedkge.models.tables import Gradients, Ids, RowGradient, Table
from fedkge.models.training import Trainer

CHUNK = 256
"""Triples whose gradients are held apart at a time: they stay in the processor's cache."""

AT_ONCE = 16
"""Steps whose public negatives are drawn together."""

Sums = NDArray[np.float64]


class Passes:
    """How many propose-test-release tests were made, and how many passed.

    >>> tests = Passes()
    >>> tests.note(Selected(np.empty(0, np.int32), passed=False))
    >>> tests.made, tests.passed
    (1, 0)
    """

    def __init__(self) -> None:
        self.counts = np.zeros(2, np.int64)
        """Made and passed, as a checkpoint holds them."""

    @property
    def made(self) -> int:
        """How many were made."""
        return int(self.counts[0])

    @property
    def passed(self) -> int:
        """How many of them passed."""
        return int(self.counts[1])

    def note(self, selected: Selected) -> None:
        """Count a selection that made a test."""
        if selected.passed is not None:
            self.counts += (1, selected.passed)


@dataclass(frozen=True, slots=True, eq=False)
class _Push:
    """Public (entity, relation) pairs and the entities that they are pushed away from."""

    known: Known
    drawn: Ids

    def entities(self) -> Ids:
        return np.concatenate([self.known.anchors, self.drawn.ravel()])


class PrivateTrainer:
    """Trains the tables of a `Trainer`, with its optimisers, by private steps on `triples`.

    With `public` negatives only the positive triples are private, and the rows of negatives are pushed away without
    noise; else every triple's corruptions are part of its clipped gradient, which needs noise on all rows.
    """

    def __init__(self, trainer: Trainer, triples: Triples, public: PublicNegatives | None = None) -> None:
        self._trainer = trainer
        self._triples: Triples = np.unique(triples, axis=0)  # a triple that stood twice would count twice
        self._public = public
        self.tests = Passes()
        both: tuple[Side, ...] = ("tail", "head")
        sides = both if trainer.negatives.corrupt == "both" else (trainer.negatives.corrupt,)
        loss = TripleLoss(() if public else sides, trainer.options.temperature)
        self._differentiator = Differentiator(trainer.embedding, loss, trainer.negatives.count, CHUNK)
        tables = trainer.embedding.tables
        self._relation_sums = _sums_of(tables.relations)
        self._released = Gradients(
            RowGradient.of(tables.entities, len(tables.entities)),
            RowGradient.of(tables.relations, len(tables.relations)),
        )
        self._released.relations.touch(np.arange(len(tables.relations), dtype=np.int32))  # in every step, all of them
        self._owed = LazyNoise(len(tables.entities)) if trainer.options.optimiser == "sgd" else None

    @cached_property
    def _all_rows(self) -> Ids:
        return np.arange(len(self._trainer.embedding.tables.entities), dtype=np.int32)

    @cached_property
    def _entity_sums(self) -> RowGradient:
        return _sums_of(self._trainer.embedding.tables.entities)

    def train(
        self,
        plan: StepPlan,
        steps: int,
        source: NoiseSource,
        generator: np.random.Generator,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Take `steps` steps. All that depends on the batch draws from `source`: who knew the coins of corruptions
        would see by how much one more triple shifts those of the others. Public negatives come from `generator`.
        """
        dense, sampling = plan.selection.releases_all, plan.sampling
        for push in self._pushes(plan, steps, generator):
            batch = self._triples[sampling.draw(len(self._triples), source)]
            drawn = self._draw_corruptions(len(batch), source)
            if not dense:
                self._selected_step(batch, drawn, plan, source)
            elif self._owed:
                self._lazy_step(self._owed, batch, drawn, push, plan, source)
            else:
                self._dense_step(batch, drawn, plan, source)
            self._release_relations(plan, source)
            self._apply(push)
            advance(plan.batch)
        if self._owed and dense:
            self._owed.settle_all(self._trainer.embedding.tables.entities, self._shift(plan), source)

    def _dense_step(self, batch: Triples, drawn: Ids, plan: StepPlan, source: NoiseSource) -> None:
        """Noise on all rows, with the clipped gradients where there are any."""
        self._sum(batch, drawn, plan)
        self._release(self._all_rows, plan, source)

    def _lazy_step(
        self, owed: LazyNoise, batch: Triples, drawn: Ids, push: _Push | None, plan: StepPlan, source: NoiseSource
    ) -> None:
        """The same for SGD, whose noise may wait until a row is read: identical in law, and cheaper."""
        read = [batch[:, HEAD], batch[:, TAIL], drawn.ravel(), *([push.entities()] if push else [])]
        owed.settle(np.concatenate(read), self._trainer.embedding.tables.entities, self._shift(plan), source)
        owed.owe()
        self._sum(batch, drawn, plan)
        sums, into = self._entity_sums, self._released.entities
        into.touch(sums.touched)
        np.divide(sums.values[: sums.count], plan.batch, out=into.values[: sums.count], casting="same_kind")

    def _selected_step(self, batch: Triples, drawn: Ids, plan: StepPlan, source: NoiseSource) -> None:
        """Noise on the rows that a private selection chose, whether the batch touched them or not."""
        self._sum(batch, drawn, plan)
        sums = self._entity_sums
        touched = Touched.of_sums(batch, sums.touched, sums.slots, _float64(sums), len(self._all_rows))
        selected = plan.selection.select(touched, source)
        self.tests.note(selected)
        self._release(selected.rows, plan, source)

    def _sum(self, batch: Triples, drawn: Ids, plan: StepPlan) -> None:
        """The sums of the clipped gradients, for the rows that the batch touches."""
        entities, relations = self._entity_sums, self._relation_sums
        for column in (batch[:, HEAD], batch[:, TAIL], drawn.ravel()):
            entities.touch(column)
        relations.touch(batch[:, RELATION])
        for gradients in self._by_chunk(batch, drawn):
            plan.clip.add_to_slots(gradients, entities.slots, _float64(entities), _float64(relations))

    def _by_chunk(self, batch: Triples, drawn: Ids) -> Iterator[PerTriple]:
        for first in range(0, len(batch), CHUNK):
            part = slice(first, first + CHUNK)
            found = self._differentiator.gradients(batch[part], drawn[part])
            relation_slots = self._relation_sums.slots[found.relation_rows]
            yield PerTriple(found.entities, found.entity_rows, found.starts, found.relations, relation_slots)

    def _release(self, rows: Ids, plan: StepPlan, source: NoiseSource) -> None:
        """Release these entity rows with noise, whether they have a sum or not."""
        sums, into = self._entity_sums, self._released.entities
        into.touch(rows)
        source.release(_float64(sums), sums.slots[rows], plan.deviation, plan.batch, into.values[: len(rows)])

    def _release_relations(self, plan: StepPlan, source: NoiseSource) -> None:
        sums, into = self._relation_sums, self._released.relations
        if plan.selection.is_private:
            source.release(_float64(sums), sums.slots, plan.deviation, plan.batch, into.values)
        else:  # as the paper prints it: relations take raw gradients
            into.values.fill(0)
            into.values[sums.touched] = sums.values[: sums.count] / plan.batch

    def _apply(self, push: _Push | None) -> None:
        """Post-processing of what was released: public negatives, the optimisers."""
        trainer, into = self._trainer, self._released
        if push:
            self._push_away(push, into)
        tables = trainer.embedding.tables
        trainer.entity_optimiser.step(tables.entities, into.entities)
        trainer.relation_optimiser.step(tables.relations, into.relations)
        into.entities.clear()
        self._entity_sums.clear()
        self._relation_sums.clear()
        trainer.steps += 1

    def _draw_corruptions(self, batch: int, source: NoiseSource) -> Ids:
        if self._public is not None:
            return np.empty((batch, 0), np.int32)
        shape = (batch, self._differentiator.corruptions)
        return source.generator.integers(0, len(self._all_rows), shape, dtype=np.int32)

    def _pushes(self, plan: StepPlan, steps: int, generator: np.random.Generator) -> Iterator[_Push | None]:
        """Public negatives for so many steps, drawn for many of them at once."""
        negatives, first = self._trainer.negatives, self._trainer.steps
        for step in range(steps):
            if self._public is None:
                yield None
                continue
            place = step % AT_ONCE
            if place == 0:
                triples = self._public.draw(AT_ONCE * plan.batch, generator).reshape(AT_ONCE, plan.batch, 3)
                groups = -(-plan.batch // negatives.group_size)
                drawn = generator.integers(0, negatives.entities, (AT_ONCE, groups, negatives.count), dtype=np.int32)
            yield _Push(Known.of(triples[place], negatives.side(first + step)), drawn[place])

    def _push_away(self, push: _Push, into: Gradients) -> None:
        trainer, embedding = self._trainer, self._trainer.embedding
        entities, comparison = embedding.tables.entities, embedding.scorer.comparison
        into.entities.touch(push.entities())
        queries = embedding.scorer.queries(embedding.tables, push.known)
        scores = np.empty((len(queries), push.drawn.shape[1]), entities.dtype)
        group = trainer.negatives.group_size
        comparison.against_rows(queries, entities, push.drawn, group, embedding.offset, scores)
        slopes = negative_slopes(scores, trainer.options.temperature)
        slope, rows = np.zeros_like(queries), into.entities
        comparison.backward(queries, entities, push.drawn, group, slopes, slope, rows.slots, rows.values)
        embedding.scorer.backward(embedding.tables, push.known, slope, into)

    def _shift(self, plan: StepPlan) -> float:
        """How far the noise of one step moves a number of the table under SGD."""
        return self._trainer.entity_optimiser.rate * plan.deviation / plan.batch


def _sums_of(table: Table) -> RowGradient:
    """Sums in float64 for the rows of a table that a batch touches."""
    return RowGradient(len(table), table.shape[1], len(table), np.float64)


def _float64(sums: RowGradient) -> Sums:
    return sums.values.astype(np.float64, copy=False)
