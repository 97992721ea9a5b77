"""What every model must do: score by its formula, differentiate its loss, learn, and repeat itself bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from fedkge.base.errors import NumericalError
from fedkge.graph import HEAD, TAIL
from fedkge.models import MODELS, Embedding, ModelShape, Tables, initial_tables, make_scorer
from fedkge.models.negatives import Negatives
from fedkge.models.per_triple import Differentiator, TripleLoss
from fedkge.models.training import Trainer, TrainingOptions
from tests.cases import Case

ENTITIES, RELATIONS, DIMENSION, MARGIN = 7, 3, 5, 2.0
TRIPLES = np.array([[0, 0, 1], [2, 1, 2], [6, 2, 0], [3, 0, 3]], dtype=np.int32)
BATCH = np.array([[0, 0, 1], [2, 1, 2], [6, 2, 0], [3, 0, 4], [0, 0, 5]], dtype=np.int32)
REPEATED = np.concatenate([BATCH, BATCH[:1]])
COUNT = 5
DRAWN = np.random.default_rng(3).integers(0, ENTITIES, (len(REPEATED), 2 * COUNT)).astype(np.int32)
"""Ten draws out of seven entities: repeats, and negatives that equal an end, are certain."""
STEP = 1e-6


class FixedNegatives(Negatives):
    """Negatives that are always the same draw, so that the loss is a function of the tables alone."""

    def draw(self, triples: Any, side: Any, generator: Any) -> Any:  # noqa: ARG002
        return super().draw(triples, side, np.random.default_rng(99))


class GivenNegatives(Negatives):
    """Negatives that a test has chosen."""

    chosen: ClassVar[Any]

    def draw(self, triples: Any, side: Any, generator: Any) -> Any:  # noqa: ARG002
        return type(self).chosen


@dataclass(frozen=True)
class Loss:
    """The paper's loss, triple by triple; the self-adversarial weights are held constant."""

    case: ModelCase
    side: str
    drawn: Any
    group: int
    regularisation: float
    weights: Any

    def of(self, tables: Tables) -> float:
        total = 0.0
        for i, (head, relation, tail) in enumerate(BATCH):
            total += np.log1p(np.exp(-self.case.twin(tables, head, relation, tail)))
            for j, entity in enumerate(self.drawn[i // self.group]):
                triple = (head, relation, entity) if self.side == "tail" else (entity, relation, tail)
                total += self.weights[i, j] * np.log1p(np.exp(self.case.twin(tables, *triple)))
            rows = tables.entities[head], tables.relations[relation], tables.entities[tail]
            total += self.regularisation * sum(float(row @ row) for row in rows)
        return total / len(BATCH)


class ModelCase(Case):
    """A registered model, with float64 tables of 7 entities and 3 relations.

    A subclass names the model and says what the score of one triple is, without its margin.
    """

    norm: ClassVar[int] = 1
    learns_up_to: ClassVar[float] = 0.6
    """The mean reciprocal rank that it exceeds on a ring of 30 entities; chance gives 0.13."""

    def formula(self, head: Any, relation: Any, tail: Any) -> float:
        """The score of one triple straight from the paper's table of score functions."""
        raise NotImplementedError

    @pytest.fixture
    def embedding(self) -> Embedding:
        shape = ModelShape(DIMENSION, margin=MARGIN, norm=self.norm)
        scorer, generator = make_scorer(self.name, shape), np.random.default_rng(5)
        tables = Tables(
            generator.normal(size=(ENTITIES, scorer.entity_width(DIMENSION))),
            generator.normal(size=(RELATIONS, scorer.relation_width(DIMENSION))),
        )
        return Embedding(scorer, tables, shape.margin)

    def twin(self, tables: Tables, head: int, relation: int, tail: int) -> float:
        rows = tables.entities[head], tables.relations[relation], tables.entities[tail]
        margin = MARGIN if self.make().comparison.is_distance else 0.0
        return margin + self.formula(*rows)

    def make(self) -> Any:
        return make_scorer(self.name, ModelShape(DIMENSION, norm=self.norm))

    # -- the class itself ---------------------------------------------------------------------------------------------

    def test_the_name_that_people_read_differs_by_case_alone(self) -> None:
        assert self.make().name.lower() == self.name
        assert type(self.make()) is MODELS[self.name]

    @pytest.mark.parametrize("dimension", [1, 2, 7, 32])
    def test_rows_have_the_width_that_the_model_says(self, dimension: int) -> None:
        shape = ModelShape(dimension, norm=self.norm)
        scorer = make_scorer(self.name, shape)
        tables = initial_tables(scorer, shape, 4, 2, np.random.default_rng(1))
        assert tables.entities.shape == (4, scorer.entity_width(dimension))
        assert tables.relations.shape == (2, scorer.relation_width(dimension))
        assert np.isfinite(Embedding(scorer, tables, shape.margin).score_triples(TRIPLES % 2)).all()

    # -- scores -------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("side", ["tail", "head"])
    def test_scores_equal_the_formula_from_either_side(self, embedding: Embedding, side: Any) -> None:
        expected = [self.twin(embedding.tables, *triple) for triple in TRIPLES]
        np.testing.assert_allclose(embedding.score_triples(TRIPLES, side), expected, rtol=1e-12)

    @pytest.mark.parametrize("side", ["tail", "head"])
    def test_candidate_scores_equal_the_formula(self, embedding: Embedding, side: Any) -> None:
        out = np.empty((len(TRIPLES), ENTITIES))
        embedding.score(TRIPLES, side, out)  # type: ignore[arg-type]
        for i, (head, relation, tail) in enumerate(TRIPLES):
            for candidate in range(ENTITIES):
                triple = (head, relation, candidate) if side == "tail" else (candidate, relation, tail)
                assert out[i, candidate] == pytest.approx(self.twin(embedding.tables, *triple), rel=1e-12)

    # -- gradients ----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("side", ["tail", "head"])
    @pytest.mark.parametrize("group", [1, 5], ids=["independent", "shared"])
    @pytest.mark.parametrize("regularisation", [0.0, 0.3])
    def test_gradient_equals_finite_differences(
        self, embedding: Embedding, side: Any, group: int, regularisation: float
    ) -> None:
        """Central differences of an independent loss, in float64."""
        negatives = FixedNegatives(entities=ENTITIES, count=5, group_size=group, corrupt=side)
        options = TrainingOptions(batch_size=5, temperature=0.7, regularisation=regularisation)
        trainer = Trainer(embedding, negatives, options)
        found = trainer.gradient(BATCH, np.random.default_rng(0))

        tables = embedding.tables
        drawn = negatives.draw(BATCH, side, np.random.default_rng(0))
        loss = Loss(self, side, drawn, group, regularisation, self._weights(tables, side, drawn, group, 0.7))
        assert found == pytest.approx(loss.of(tables), rel=1e-10)

        gradients = trainer._gradients
        for table, gradient in ((tables.entities, gradients.entities), (tables.relations, gradients.relations)):
            for row, k in np.ndindex(*table.shape):
                before = table[row, k]
                table[row, k] = before + STEP
                above = loss.of(tables)
                table[row, k] = before - STEP
                below = loss.of(tables)
                table[row, k] = before
                slot = gradient.slots[row]
                computed = gradient.values[slot, k] if slot >= 0 else 0.0
                assert computed == pytest.approx((above - below) / (2 * STEP), abs=1e-7, rel=1e-5)

    def _weights(self, tables: Tables, side: str, drawn: Any, group: int, temperature: float) -> Any:
        scores = np.array(
            [
                [self.twin(tables, *((h, r, e) if side == "tail" else (e, r, t))) for e in drawn[i // group]]
                for i, (h, r, t) in enumerate(BATCH)
            ]
        )
        weights = np.exp(temperature * scores)
        return weights / weights.sum(axis=1, keepdims=True)

    def test_identical_rows_give_a_finite_gradient(self, embedding: Embedding) -> None:
        """A distance of zero has no slope; it must not become NaN."""
        embedding.tables.entities[:] = 0.0
        embedding.tables.relations[:] = 0.0
        trainer = Trainer(embedding, Negatives(ENTITIES, 4), TrainingOptions(batch_size=5))
        trainer.step(BATCH, np.random.default_rng(0))
        assert embedding.tables.is_finite()

    def test_a_loss_that_is_not_finite_is_an_error(self, embedding: Embedding) -> None:
        embedding.tables.entities[0, 0] = np.nan
        trainer = Trainer(embedding, Negatives(ENTITIES, 4), TrainingOptions())
        with pytest.raises(NumericalError, match="lower the learning rate"):
            trainer.step(TRIPLES[:1], np.random.default_rng(0))

    # -- the gradient of each triple apart ----------------------------------------------------------------------------

    @pytest.mark.parametrize("sides", [("tail",), ("head",), ("tail", "head")], ids="+".join)
    def test_each_triple_has_the_gradient_of_a_step_on_it_alone(self, embedding: Embedding, sides: Any) -> None:
        """The trainer's gradient of a batch of one is checked against finite differences above."""
        per_triple = Differentiator(embedding, TripleLoss(sides, temperature=0.7), COUNT, len(REPEATED))
        found = per_triple.gradients(REPEATED, DRAWN[:, : per_triple.corruptions])
        for i, triple in enumerate(REPEATED):
            parts = [
                _alone(embedding, triple, side, DRAWN[i, k * COUNT : (k + 1) * COUNT]) for k, side in enumerate(sides)
            ]
            entities, relations = (sum(part[k] for part in parts) for k in (0, 1))
            own = slice(found.starts[i], found.starts[i + 1])
            computed = np.zeros_like(entities)
            computed[found.entity_rows[own]] = found.entities[own]
            np.testing.assert_allclose(computed, entities, atol=1e-12)
            np.testing.assert_allclose(found.relations[i], relations[triple[1]], atol=1e-12)
            assert found.relation_rows[i] == triple[1]

    def test_every_entity_stands_once_per_triple(self, embedding: Embedding) -> None:
        found = Differentiator(embedding, TripleLoss(), COUNT, len(REPEATED)).gradients(REPEATED, DRAWN)
        for i, triple in enumerate(REPEATED):
            rows = found.entity_rows[found.starts[i] : found.starts[i + 1]].tolist()
            assert sorted(rows) == sorted({triple[HEAD], triple[TAIL], *DRAWN[i]})

    def test_without_negatives_only_the_ends_and_the_relation_move(self, embedding: Embedding) -> None:
        per_triple = Differentiator(embedding, TripleLoss(sides=()), 0, len(REPEATED))
        found = per_triple.gradients(REPEATED, np.empty((len(REPEATED), 0), np.int32))
        assert found.starts.tolist() == [0, 2, 3, 5, 7, 9, 11]
        tables, before = embedding.tables, embedding.score_triples(REPEATED)
        tables.entities[0, 0] += STEP
        after = embedding.score_triples(REPEATED)
        tables.entities[0, 0] -= STEP
        loss = (np.log1p(np.exp(-after)) - np.log1p(np.exp(-before))) / STEP
        assert found.entities[0, 0] == pytest.approx(loss[0], abs=1e-4)

    def test_a_second_chunk_forgets_the_first(self, embedding: Embedding) -> None:
        per_triple = Differentiator(embedding, TripleLoss(), COUNT, len(REPEATED))
        once = per_triple.gradients(REPEATED[:2], DRAWN[:2])
        first = once.entities.copy(), once.relations.copy()
        per_triple.gradients(REPEATED[2:], DRAWN[2:])
        again = per_triple.gradients(REPEATED[:2], DRAWN[:2])
        np.testing.assert_array_equal(again.entities, first[0])
        np.testing.assert_array_equal(again.relations, first[1])

    @pytest.mark.parametrize("scale", [1.0, 1e3, 1e-40])
    @pytest.mark.parametrize("count", [0, COUNT])
    def test_the_gradient_of_a_triple_does_not_depend_on_its_neighbours_by_a_single_bit(
        self, embedding: Embedding, scale: float, count: int
    ) -> None:
        tables = embedding.tables
        small = Tables((tables.entities * scale).astype(np.float32), (tables.relations * scale).astype(np.float32))
        loss, generator = TripleLoss(("tail", "head") if count else ()), np.random.default_rng(1)
        sizes = (ENTITIES, RELATIONS, ENTITIES)
        triples = np.stack([generator.integers(0, size, 201) for size in sizes], axis=1).astype(np.int32)
        drawn = generator.integers(0, ENTITIES, (201, 2 * count)).astype(np.int32)
        per_triple = Differentiator(Embedding(embedding.scorer, small, embedding.margin), loss, count, 201)
        found = per_triple.gradients(triples, drawn)
        entities, relations, starts = found.entities.copy(), found.relations.copy(), found.starts
        for i in range(len(triples)):
            own = per_triple.gradients(triples[i : i + 1], drawn[i : i + 1])
            assert own.entities.tobytes() == entities[starts[i] : starts[i + 1]].tobytes()
            assert own.relations.tobytes() == relations[i : i + 1].tobytes()

    # -- training -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("group", [1, 5])
    def test_true_triples_come_to_score_above_false_ones(self, group: int) -> None:
        """Uniform negatives hit true triples, so the loss stays above 0."""
        embedding, losses = self.trained(group)
        assert losses[-1] < 0.9 * losses[0]
        triples = ring()
        scores = np.empty((len(triples), 30), np.float32)
        embedding.score(triples, "tail", scores)
        true = scores[np.arange(len(triples)), triples[:, 2]]
        ranks = 1 + (scores > true[:, None]).sum(axis=1)
        assert (1 / ranks).mean() > self.learns_up_to

    def test_the_same_seed_gives_the_same_bits(self) -> None:
        first, second = self.trained(5, epochs=3)[0], self.trained(5, epochs=3)[0]
        np.testing.assert_array_equal(first.tables.entities, second.tables.entities)
        other = self.trained(5, seed=2, epochs=3)[0]
        assert not np.array_equal(first.tables.entities, other.tables.entities)

    def trained(self, group: int, seed: int = 1, epochs: int = 60) -> tuple[Embedding, list[float]]:
        triples, shape = ring(), ModelShape(dimension=16, margin=6.0, norm=self.norm)
        scorer, generator = make_scorer(self.name, shape), np.random.default_rng(seed)
        embedding = Embedding(scorer, initial_tables(scorer, shape, 30, 2, generator), shape.margin)
        options = TrainingOptions(batch_size=12, learning_rate=0.05)
        trainer = Trainer(embedding, Negatives(30, 16, group, "both"), options)
        return embedding, [trainer.epoch(triples, generator) for _ in range(epochs)]


def ring(size: int = 30) -> Any:
    """Entity i is followed by i + 1: relation 0 forward, relation 1 back."""
    forward = [(i, 0, (i + 1) % size) for i in range(size)]
    return np.array(forward + [(t, 1, h) for h, _, t in forward], dtype=np.int32)


def _alone(embedding: Embedding, triple: Any, side: Any, negatives: Any) -> list[Any]:
    """Dense gradients of one triple's loss."""
    GivenNegatives.chosen = negatives.reshape(1, -1)
    options = TrainingOptions(batch_size=1, temperature=0.7)
    trainer = Trainer(embedding, GivenNegatives(ENTITIES, COUNT, 1, corrupt=side), options)
    trainer.gradient(triple.reshape(1, 3), np.random.default_rng(0))
    return list(_dense(embedding.tables, trainer._gradients))


def _dense(tables: Tables, gradients: Any) -> Iterator[Any]:
    for table, part in ((tables.entities, gradients.entities), (tables.relations, gradients.relations)):
        whole = np.zeros_like(table)
        whole[part.touched] = part.values[: part.count]
        yield whole
