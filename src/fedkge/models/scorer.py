"""What a model is: a query map, and a comparison of queries with entity rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fedkge.graph import HEAD, RELATION, TAIL, Side, Triples
from fedkge.models.comparisons import Comparison
from fedkge.models.tables import Gradients, Ids, Table, Tables


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What fixes a model's size and score: dimension, margin (distances only) and norm (TransE only)."""

    dimension: int = 128
    margin: float = 10.0
    norm: int = 1


def start_range(shape: ModelShape) -> float:
    """Start values are uniform in plus or minus this range, as in the RotatE authors' and FedE's code.

    >>> start_range(ModelShape(dimension=128, margin=10.0))
    0.09375
    """
    return (shape.margin + 2.0) / shape.dimension


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of some triples when one `side` is missing: the other end (the anchor) and the relation."""

    anchors: Ids
    relations: Ids
    side: Side

    @classmethod
    def of(cls, triples: Triples, side: Side) -> Known:
        """The known part of `triples` when their `side` is missing."""
        anchors = triples[:, HEAD if side == "tail" else TAIL]
        return cls(anchors.copy(), triples[:, RELATION].copy(), side)

    @property
    def direction(self) -> int:
        """1 when the relation leads to the missing side, -1 when it must be gone back."""
        return 1 if self.side == "tail" else -1


class Scorer(Protocol):
    """A model. `queries` maps what is known of a triple to a vector; the comparison of that vector with a
    candidate row, plus the margin for distances, is the score: higher is more plausible.
    """

    @classmethod
    def of_shape(cls, shape: ModelShape) -> Scorer:
        """The scorer for a model of this shape."""
        ...

    @property
    def name(self) -> str:
        """The name people read: TransE, RotatE, DistMult, ComplEx."""
        ...

    @property
    def comparison(self) -> Comparison:
        """How queries and entity rows are compared."""
        ...

    def entity_width(self, dimension: int) -> int:
        """Numbers in one entity row."""
        ...

    def relation_width(self, dimension: int) -> int:
        """Numbers in one relation row."""
        ...

    def queries(self, tables: Tables, known: Known) -> Table:
        """One query vector per triple, as wide as an entity row."""
        ...

    def backward(self, tables: Tables, known: Known, slope: Table, into: Gradients) -> None:
        """Carry the gradient of the queries on to the rows of anchors and relations (already touched)."""
        ...
