"""Gradients of all models equal central finite differences of an independent loss, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.models import Tables
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions

BATCH = np.array([[0, 0, 1], [2, 1, 2], [6, 2, 0], [3, 0, 4], [0, 0, 5]], dtype=np.int32)
STEP = 1e-6


class FixedNegatives(Negatives):
    """Negatives that are always the same draw, so that the loss is a function of the tables alone."""

    def draw(self, triples, side, generator):  # noqa: ARG002
        return super().draw(triples, side, np.random.default_rng(99))


def loss_twin(case, tables: Tables, side: str, drawn, group: int, weights, regularisation: float) -> float:
    """The paper's loss, triple by triple; `weights` are the self-adversarial p, held constant."""
    total = 0.0
    for i, (head, relation, tail) in enumerate(BATCH):
        total += np.log1p(np.exp(-case.twin(head, relation, tail, tables)))
        for j, entity in enumerate(drawn[i // group]):
            triple = (head, relation, entity) if side == "tail" else (entity, relation, tail)
            total += weights[i, j] * np.log1p(np.exp(case.twin(*triple, tables)))
        rows = tables.entities[head], tables.relations[relation], tables.entities[tail]
        total += regularisation * sum(float(row @ row) for row in rows)
    return total / len(BATCH)


def constant_weights(case, side, drawn, group, temperature):
    scores = np.array(
        [
            [case.twin(h, r, e) if side == "tail" else case.twin(e, r, t) for e in drawn[i // group]]
            for i, (h, r, t) in enumerate(BATCH)
        ]
    )
    weights = np.exp(temperature * scores)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("side", ["tail", "head"])
@pytest.mark.parametrize("group", [1, 5], ids=["independent", "shared"])
@pytest.mark.parametrize("regularisation", [0.0, 0.3])
def test_gradient_equals_finite_differences(case, side, group, regularisation):
    negatives = FixedNegatives(entities=7, count=5, group_size=group, corrupt=side)
    options = TrainingOptions(batch_size=5, temperature=0.7, regularisation=regularisation)
    trainer = Trainer(case.embedding, negatives, options)
    loss = trainer.gradient(BATCH, np.random.default_rng(0))

    tables = case.embedding.tables
    drawn = negatives.draw(BATCH, side, np.random.default_rng(0))
    weights = constant_weights(case, side, drawn, group, 0.7)
    fixed = (side, drawn, group, weights, regularisation)
    assert loss == pytest.approx(loss_twin(case, tables, *fixed), rel=1e-10)

    gradients = trainer._gradients
    for table, gradient in ((tables.entities, gradients.entities), (tables.relations, gradients.relations)):
        for row in range(len(table)):
            slot = gradient.slots[row]
            for k in range(table.shape[1]):
                before = table[row, k]
                table[row, k] = before + STEP
                above = loss_twin(case, tables, *fixed)
                table[row, k] = before - STEP
                below = loss_twin(case, tables, *fixed)
                table[row, k] = before
                computed = gradient.values[slot, k] if slot >= 0 else 0.0
                assert computed == pytest.approx((above - below) / (2 * STEP), abs=1e-7, rel=1e-5)


def test_identical_rows_give_a_finite_gradient(case):
    """A distance of zero has no slope; it must not become NaN."""
    case.embedding.tables.entities[:] = 0.0
    case.embedding.tables.relations[:] = 0.0
    trainer = Trainer(case.embedding, Negatives(7, 4), TrainingOptions(batch_size=5))
    trainer.step(BATCH, np.random.default_rng(0))
    assert case.embedding.tables.is_finite()
