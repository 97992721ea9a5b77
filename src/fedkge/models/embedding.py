"""A trained (or freshly drawn) model: a scorer with its tables, which scores triples and candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.graph import HEAD, TAIL, Side, Triples
from fedkge.models.scorer import Known, ModelShape, Scorer, start_range
from fedkge.models.tables import Table, Tables


def initial_rows(rows: int, width: int, shape: ModelShape, generator: np.random.Generator) -> Table:
    """Uniform start values for a table.

    >>> initial_rows(2, 3, ModelShape(dimension=3), np.random.default_rng(1)).shape
    (2, 3)
    """
    spread = np.float32(start_range(shape))
    values = generator.random((rows, width), dtype=np.float32)
    values *= 2 * spread
    values -= spread
    return values


def initial_tables(
    scorer: Scorer, shape: ModelShape, entities: int, relations: int, generator: np.random.Generator
) -> Tables:
    """Start values for both tables, entities first."""
    return Tables(
        initial_rows(entities, scorer.entity_width(shape.dimension), shape, generator),
        initial_rows(relations, scorer.relation_width(shape.dimension), shape, generator),
    )


class Prior(Protocol):
    """What is known about answers without an embedding; its scores are added to those of one."""

    def add_scores(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Add to `out[i, j]` the score of triple i after its `side` became entity j."""
        ...

    def of_triples(self, triples: Triples, side: Side) -> NDArray[np.float32]:
        """The score of each triple's own answer when `side` is missing."""
        ...


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A scorer with its tables; it implements `evaluation.CandidateScorer` over all of its entities.

    Where there is a `prior`, scores are the model's and the prior's together; training sees the model's alone.

    >>> from fedkge.models.transe import TransE
    >>> tables = Tables(np.array([[0.0], [1.0]], np.float32), np.array([[1.0]], np.float32))
    >>> Embedding(TransE(), tables, margin=10.0).score_triples(np.array([[0, 0, 1], [1, 0, 0]], np.int32)).tolist()
    [10.0, 8.0]
    """

    scorer: Scorer
    tables: Tables
    margin: float
    prior: Prior | None = None

    @property
    def offset(self) -> float:
        """What is added to the comparison: the margin for distances, nothing for inner products."""
        return self.margin if self.scorer.comparison.is_distance else 0.0

    @property
    def candidates(self) -> int:
        """How many entities there are."""
        return len(self.tables.entities)

    def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Fill `out[i, j]` with the score of triple i after its `side` became entity j."""
        queries = self.scorer.queries(self.tables, Known.of(triples, side))
        self.scorer.comparison.against_all(queries, self.tables.entities, self.offset, out)
        if self.prior:
            self.prior.add_scores(triples, side, out)

    def score_triples(self, triples: Triples, side: Side = "tail") -> Table:
        """The score of each triple, computed from its known part when `side` is missing."""
        queries = self.scorer.queries(self.tables, Known.of(triples, side))
        targets = np.ascontiguousarray(triples[:, TAIL if side == "tail" else HEAD]).reshape(-1, 1)
        out = np.empty((len(triples), 1), dtype=self.tables.entities.dtype)
        self.scorer.comparison.against_rows(queries, self.tables.entities, targets, 1, self.offset, out)
        return out[:, 0] + self.prior.of_triples(triples, side) if self.prior else out[:, 0]
