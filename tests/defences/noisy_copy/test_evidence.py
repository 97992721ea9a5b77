"""What a model says about answers, beside a plain rendering of the same sentence."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.defences.noisy_copy import CopyPlan, NoisyCopy
from fedkge.defences.noisy_copy import evidence as module
from fedkge.defences.noisy_copy.evidence import MOST_EVIDENCE, evidence
from fedkge.defences.noisy_copy.noisy_copy import triples_of
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models import MODELS, Embedding, ModelShape, initial_tables, make_scorer

GRAPH = synthetic_graph(entities=50, relations=4, triples=400, seed=3)
COPY = NoisyCopy.draw(
    GRAPH.train, len(GRAPH.entities), len(GRAPH.relations), CopyPlan(0.5, 6.0), NoiseSource.research(1)
)
TRIPLES = triples_of(COPY.cells, COPY.entities)


def embedding(model: str, scale: float = 1.0) -> Embedding:
    shape = ModelShape(dimension=4)
    scorer = make_scorer(model, shape)
    tables = initial_tables(scorer, shape, COPY.entities, COPY.relations, np.random.default_rng(0))
    tables.entities[...] *= scale
    return Embedding(scorer, tables, shape.margin)


def plainly(model: Embedding, heads: dict[int, list[int]], tails: dict[int, list[int]]) -> np.ndarray:
    """log(odds of the triple among itself and others, by exp(score), times their number), mean of both sides."""
    found = []
    for head, relation, tail in TRIPLES.tolist():
        own, total = float(model.score_triples(np.array([[head, relation, tail]], np.int32))[0]), 0.0
        for others in (
            [[head, relation, other] for other in tails[relation]],
            [[other, relation, tail] for other in heads[relation]],
        ):
            scores = np.append(model.score_triples(np.array(others, np.int32)).astype(np.float64), own)
            total += own - np.log(np.exp(scores - scores.max()).sum()) - scores.max() + np.log(len(scores))
        found.append(total / 2)
    return np.clip(found, -MOST_EVIDENCE, MOST_EVIDENCE)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_it_is_what_its_sentence_says(model: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[int, list[int]] = {}
    popular = module._popular

    def remember(expected, row, generator):
        drawn[row] = (others := popular(expected, row, generator)).tolist()
        return others

    monkeypatch.setattr(module, "_popular", remember)
    monkeypatch.setattr(module, "CHUNK", 7)
    one = embedding(model, scale)
    found = evidence(TRIPLES, COPY.expected, one, np.random.default_rng(5))
    tails = {row: others for row, others in drawn.items() if row < COPY.relations}
    heads = {row - COPY.relations: others for row, others in drawn.items() if row >= COPY.relations}
    np.testing.assert_allclose(found, plainly(one, heads, tails), rtol=2e-3, atol=2e-3)


def test_other_ends_are_drawn_as_often_as_they_are_expected() -> None:
    generator = np.random.default_rng(1)
    for row in (0, COPY.relations + 1):
        drawn = np.concatenate([module._popular(COPY.expected, row, generator) for _ in range(2000)])
        expected = COPY.expected.rows[row].full(COPY.entities)
        shares = np.bincount(drawn, minlength=COPY.entities) / len(drawn)
        np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.006)
