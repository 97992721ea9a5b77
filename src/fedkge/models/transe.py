"""TransE (Bordes et al., 2013): score = margin - || h + r - t ||."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkge.errors import ConfigurationError
from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.l1 import L1
from fedkge.models.comparisons.l2 import L2
from fedkge.models.kernel import kernel
from fedkge.models.scorer import Known, ModelShape
from fedkge.models.tables import Gradients, Table, Tables


@kernel
def _queries(entities, relations, anchors, relation_ids, sign, out):
    for i in range(anchors.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = entities[anchors[i], k] + sign * relations[relation_ids[i], k]


@kernel
def _backward(anchors, relation_ids, sign, gradient, entity_slots, entity_gradient, relation_slots, relation_gradient):
    for i in range(anchors.shape[0]):
        entity = entity_slots[anchors[i]]
        relation = relation_slots[relation_ids[i]]
        for k in range(gradient.shape[1]):
            entity_gradient[entity, k] += gradient[i, k]
            relation_gradient[relation, k] += sign * gradient[i, k]


@dataclass(frozen=True)
class TransE:
    """Tail query h + r, head query t - r, compared by L1 (`norm` 1, as FedE) or L2 (`norm` 2) distance.

    >>> tables = Tables(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]]))
    >>> nothing = np.zeros(1, np.int32)
    >>> TransE().queries(tables, Known(nothing, nothing, "tail")).tolist()
    [[1.0, 2.0]]
    """

    norm: int = 1
    name: str = "TransE"

    def __post_init__(self) -> None:
        if self.norm not in (1, 2):
            raise ConfigurationError(f"TransE: expected norm 1 or 2, got {self.norm}")

    @classmethod
    def of_shape(cls, shape: ModelShape) -> TransE:
        """The scorer for a model of this shape."""
        return cls(norm=shape.norm)

    @property
    def comparison(self) -> Comparison:
        """The distance in use."""
        return L1 if self.norm == 1 else L2

    def entity_width(self, dimension: int) -> int:
        """One number per dimension."""
        return dimension

    def relation_width(self, dimension: int) -> int:
        """One number per dimension."""
        return dimension

    def queries(self, tables: Tables, known: Known) -> Table:
        """h + r for a missing tail, t - r for a missing head."""
        out = np.empty((len(known.anchors), tables.entities.shape[1]), dtype=tables.entities.dtype)
        _queries(tables.entities, tables.relations, known.anchors, known.relations, known.direction, out)
        return out

    def backward(self, tables: Tables, known: Known, slope: Table, into: Gradients) -> None:  # noqa: ARG002
        """The query is a sum: its gradient goes to both parts."""
        _backward(
            known.anchors,
            known.relations,
            known.direction,
            slope,
            into.entities.slots,
            into.entities.values,
            into.relations.slots,
            into.relations.values,
        )
