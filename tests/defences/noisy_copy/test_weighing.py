"""How much counts weigh beside a model: a good model lowers it, a poor one raises it, and no triple is looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedkge.defences.noisy_copy import CopyPlan, CopyPrior, NoisyCopy, weighing
from fedkge.defences.noisy_copy.noisy_copy import HELD_OUT, cells_of, held_out, triples_of
from fedkge.defences.noisy_copy.weighing import WEIGHTS, _reciprocal_ranks, weigh
from fedkge.evaluation import rank
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models import Embedding, ModelShape, initial_tables, make_scorer

GRAPH = synthetic_graph(entities=200, relations=5, triples=4000, seed=3)
COPY = NoisyCopy.draw(
    GRAPH.train, len(GRAPH.entities), len(GRAPH.relations), CopyPlan(0.5, 6.0), NoiseSource.research(1)
)


def model() -> Embedding:
    shape = ModelShape(dimension=8)
    scorer = make_scorer("transe", shape)
    tables = initial_tables(scorer, shape, COPY.entities, COPY.relations, np.random.default_rng(0))
    return Embedding(scorer, tables, shape.margin)


class Table:
    """A model that knows the graph: 9 for what is true, 0 for the rest."""

    def __init__(self, triples: np.ndarray) -> None:
        self._dense = np.zeros((COPY.relations, COPY.entities, COPY.entities), np.float32)
        self._dense[triples[:, 1], triples[:, 0], triples[:, 2]] = 9.0

    def score(self, triples, side, out):
        for line, (head, relation, tail) in enumerate(triples.tolist()):
            out[line] = self._dense[relation, head] if side == "tail" else self._dense[relation, :, tail]


def test_cells_and_triples_are_two_names_of_one_thing():
    np.testing.assert_array_equal(cells_of(triples_of(COPY.cells, COPY.entities), COPY.entities), COPY.cells)


def test_about_one_answer_of_so_many_is_held_out_whatever_the_numbers_are():
    for cells in (COPY.cells, np.arange(20_000), np.arange(20_000) * COPY.entities):
        share = held_out(cells).mean()
        assert 0.5 / HELD_OUT < share < 1.6 / HELD_OUT


def test_counts_weigh_little_beside_a_model_that_knows_and_much_beside_one_that_does_not():
    believed, generator = COPY.believed(), np.random.default_rng(1)
    knowing = weigh(COPY, Table(GRAPH.train), believed, generator)
    ignorant = weigh(COPY, model(), believed, generator)
    assert knowing <= 0.5
    assert ignorant >= 2
    assert {knowing, ignorant} <= set(WEIGHTS)


@pytest.mark.parametrize("copy", [COPY.without_answers(), replace(COPY, epsilon=1.0)], ids=["none", "lies"])
def test_answers_that_are_few_or_lie_often_are_no_judges(copy):
    assert weigh(copy, Table(GRAPH.train), GRAPH.train[:0], np.random.default_rng(1)) == WEIGHTS[-1]


@pytest.mark.parametrize("side", ["tail", "head"])
def test_ranks_are_those_of_a_plain_ranking_of_scores_with_counts(side):
    """Beside `rank`, which filters by known answers too; the triples among them, and some of which nobody knows."""
    one, generator = model(), np.random.default_rng(4)
    triples = np.concatenate((GRAPH.train[::60], generator.integers(0, [200, 5, 200], (20, 3)).astype(np.int32)))
    known = GRAPH.train
    expected = []
    for weight in WEIGHTS:
        ranking = rank(replace(one, prior=CopyPrior(COPY.expected, weight)), triples, known)
        expected.append((1 / getattr(ranking, side).realistic).sum())
    np.testing.assert_allclose(_reciprocal_ranks(COPY, one, triples, known, side), expected, rtol=1e-5)


def test_both_sides_judge(monkeypatch):
    sides = []
    ranks = weighing._reciprocal_ranks
    monkeypatch.setattr(weighing, "_reciprocal_ranks", lambda *given: sides.append(given[-1]) or ranks(*given))
    weigh(COPY, model(), COPY.believed(), np.random.default_rng(1))
    assert sides == ["tail", "head"]


def test_the_weight_is_kept_with_the_copy_and_with_the_model():
    heavy = replace(COPY, weight=4.0)
    assert NoisyCopy.of_arrays(heavy.arrays()).weight == 4.0
    assert NoisyCopy.of_arrays(heavy.without_answers().arrays()).weight == 4.0
