"""The gradient of each triple apart equals that of a training step on this triple alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.graph import HEAD, TAIL
from fedkge.models.embedding import Embedding
from fedkge.models.negatives import Negatives
from fedkge.models.per_triple import Differentiator, TripleLoss
from fedkge.models.tables import Tables
from fedkge.models.training import Trainer, TrainingOptions

BATCH = np.array([[0, 0, 1], [2, 1, 2], [6, 2, 0], [3, 0, 4], [0, 0, 5], [0, 0, 1]], dtype=np.int32)
COUNT = 5
DRAWN = np.random.default_rng(3).integers(0, 7, (len(BATCH), 2 * COUNT)).astype(np.int32)
"""Ten draws out of seven entities: repeats, and negatives that equal an end, are certain."""


class Given(Negatives):
    """Negatives that someone has chosen."""

    chosen: np.ndarray

    def draw(self, triples, side, generator):  # noqa: ARG002
        return type(self).chosen


def alone(case, triple, side, negatives):
    """Dense gradients of one triple's loss, by the trainer that is checked against finite differences."""
    Given.chosen = negatives.reshape(1, -1)
    trainer = Trainer(case.embedding, Given(7, COUNT, 1, corrupt=side), TrainingOptions(batch_size=1, temperature=0.7))
    trainer.gradient(triple.reshape(1, 3), np.random.default_rng(0))
    tables = case.embedding.tables
    dense = [np.zeros_like(tables.entities), np.zeros_like(tables.relations)]
    for whole, part in zip(dense, (trainer._gradients.entities, trainer._gradients.relations), strict=True):
        whole[part.touched] = part.values[: part.count]
    return dense


@pytest.mark.parametrize("sides", [("tail",), ("head",), ("tail", "head")], ids="+".join)
def test_each_triple_has_the_gradient_of_a_step_on_it_alone(case, sides):
    per_triple = Differentiator(case.embedding, TripleLoss(sides, temperature=0.7), COUNT, len(BATCH))
    found = per_triple.gradients(BATCH, DRAWN[:, : per_triple.corruptions])
    for i, triple in enumerate(BATCH):
        parts = [alone(case, triple, side, DRAWN[i, k * COUNT : (k + 1) * COUNT]) for k, side in enumerate(sides)]
        entities, relations = (sum(part[k] for part in parts) for k in (0, 1))
        own = slice(found.starts[i], found.starts[i + 1])
        computed = np.zeros_like(entities)
        computed[found.entity_rows[own]] = found.entities[own]
        np.testing.assert_allclose(computed, entities, atol=1e-12)
        np.testing.assert_allclose(found.relations[i], relations[triple[1]], atol=1e-12)
        assert found.relation_rows[i] == triple[1]


def test_every_entity_stands_once_per_triple(case):
    per_triple = Differentiator(case.embedding, TripleLoss(), COUNT, len(BATCH))
    found = per_triple.gradients(BATCH, DRAWN)
    for i, triple in enumerate(BATCH):
        rows = found.entity_rows[found.starts[i] : found.starts[i + 1]].tolist()
        assert sorted(rows) == sorted({triple[HEAD], triple[TAIL], *DRAWN[i]})


def test_without_negatives_only_the_ends_and_the_relation_move(case):
    per_triple = Differentiator(case.embedding, TripleLoss(sides=()), 0, len(BATCH))
    found = per_triple.gradients(BATCH, np.empty((len(BATCH), 0), np.int32))
    assert found.starts.tolist() == [0, 2, 3, 5, 7, 9, 11]
    step = 1e-6
    tables, before = case.embedding.tables, case.embedding.score_triples(BATCH)
    tables.entities[0, 0] += step
    after = case.embedding.score_triples(BATCH)
    tables.entities[0, 0] -= step
    loss = (np.log1p(np.exp(-after)) - np.log1p(np.exp(-before))) / step
    assert found.entities[0, 0] == pytest.approx(loss[0], abs=1e-4)


def test_a_second_chunk_forgets_the_first(case):
    per_triple = Differentiator(case.embedding, TripleLoss(), COUNT, len(BATCH))
    once = per_triple.gradients(BATCH[:2], DRAWN[:2])
    first = once.entities.copy(), once.relations.copy()
    per_triple.gradients(BATCH[2:], DRAWN[2:])
    again = per_triple.gradients(BATCH[:2], DRAWN[:2])
    np.testing.assert_array_equal(again.entities, first[0])
    np.testing.assert_array_equal(again.relations, first[1])


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-40])
@pytest.mark.parametrize("count", [0, COUNT])
def test_the_gradient_of_a_triple_does_not_depend_on_its_neighbours_by_a_single_bit(case, scale, count):
    tables = case.embedding.tables
    small = Tables((tables.entities * scale).astype(np.float32), (tables.relations * scale).astype(np.float32))
    embedding = Embedding(case.embedding.scorer, small, case.embedding.margin)
    loss = TripleLoss(("tail", "head") if count else ())
    generator = np.random.default_rng(1)
    triples = np.stack([generator.integers(0, size, 201) for size in (7, 3, 7)], axis=1).astype(np.int32)
    drawn = generator.integers(0, 7, (201, 2 * count)).astype(np.int32)
    per_triple = Differentiator(embedding, loss, count, 201)
    found = per_triple.gradients(triples, drawn)
    entities, relations, starts = found.entities.copy(), found.relations.copy(), found.starts
    for i in range(len(triples)):
        own = per_triple.gradients(triples[i : i + 1], drawn[i : i + 1])
        assert own.entities.tobytes() == entities[starts[i] : starts[i + 1]].tobytes()
        assert own.relations.tobytes() == relations[i : i + 1].tobytes()
