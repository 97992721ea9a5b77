"""Small random models in float64, and plain NumPy twins of what the kernels compute."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.models import Embedding, ModelShape, Tables, make_scorer

MODEL_CASES = [("transe", 1), ("transe", 2), ("rotate", 1), ("distmult", 1), ("complex", 1)]


def score_twin(name: str, norm: int, phase_range: float, head, relation, tail) -> float:
    """The score of one triple straight from the paper's table of score functions, without margin."""
    if name == "transe":
        return -float(np.linalg.norm(head + relation - tail, ord=norm))
    if name == "distmult":
        return float(np.sum(head * relation * tail))
    half = len(head) // 2
    head, tail = head[:half] + 1j * head[half:], tail[:half] + 1j * tail[half:]
    if name == "rotate":
        return -float(np.abs(head * np.exp(1j * np.pi * relation / phase_range) - tail).sum())
    return float(np.real(np.sum(head * (relation[:half] + 1j * relation[half:]) * np.conj(tail))))


class Case:
    """One model with float64 tables of 7 entities and 3 relations."""

    def __init__(self, name: str, norm: int, dimension: int = 5) -> None:
        self.name, self.norm = name, norm
        shape = ModelShape(dimension, margin=2.0, norm=norm)
        scorer = make_scorer(name, shape)
        generator = np.random.default_rng(5)
        tables = Tables(
            generator.normal(size=(7, scorer.entity_width(dimension))),
            generator.normal(size=(3, scorer.relation_width(dimension))),
        )
        self.embedding = Embedding(scorer, tables, shape.margin)
        self.phase_range = 4.0 / dimension

    def twin(self, head: int, relation: int, tail: int, tables: Tables | None = None) -> float:
        tables = tables or self.embedding.tables
        rows = tables.entities[head], tables.relations[relation], tables.entities[tail]
        return self.embedding.offset + score_twin(self.name, self.norm, self.phase_range, *rows)


@pytest.fixture(params=MODEL_CASES, ids=[f"{name}-{norm}" for name, norm in MODEL_CASES])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(*request.param)
