"""TransE (Bordes et al., 2013): score = margin - || h + r - t ||."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.base.errors import ConfigurationError
from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.l1 import L1
from fedkge.models.comparisons.l2 import L2
from fedkge.models.kernel import kernel
from fedkge.models.queries import CompiledQueries
from fedkge.models.scorer import ModelShape


@kernel
def _forward(entities, relations, anchors, kinds, direction, out):
    for i in range(anchors.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = entities[anchors[i], k] + direction * relations[kinds[i], k]


@kernel
def _reverse(  # the rows themselves are not needed: a sum's slope is the same everywhere
    _entities,
    _relations,
    anchors,
    kinds,
    direction,
    slope,
    entity_slots,
    entity_sums,
    relation_slots,
    relation_sums,
):
    for i in range(anchors.shape[0]):
        entity = entity_slots[anchors[i]]
        relation = relation_slots[kinds[i]]
        for k in range(slope.shape[1]):
            entity_sums[entity, k] += slope[i, k]
            relation_sums[relation, k] += direction * slope[i, k]


@dataclass(frozen=True)
class TransE(CompiledQueries):
    """Tail query h + r, head query t - r, compared by L1 (`norm` 1, as FedE) or L2 (`norm` 2) distance.

    >>> import numpy as np
    >>> from fedkge.models.scorer import Known
    >>> from fedkge.models.tables import Tables
    >>> tables = Tables(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]]))
    >>> nothing = np.zeros(1, np.int32)
    >>> TransE().queries(tables, Known(nothing, nothing, "tail")).tolist()
    [[1.0, 2.0]]
    """

    forward = staticmethod(_forward)
    reverse = staticmethod(_reverse)

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
