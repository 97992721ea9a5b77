"""DistMult (Yang et al., 2015): score = sum of h * r * t."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.dot import DOT
from fedkge.models.kernel import kernel
from fedkge.models.queries import CompiledQueries
from fedkge.models.scorer import ModelShape


@kernel
def _forward(entities, relations, anchors, kinds, _direction, out):
    for i in range(anchors.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = entities[anchors[i], k] * relations[kinds[i], k]


@kernel
def _reverse(
    entities, relations, anchors, kinds, _direction, gradient, entity_slots, entity_sums, relation_slots, relation_sums
):
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        entity_slot, relation_slot = entity_slots[anchor], relation_slots[relation]
        for k in range(gradient.shape[1]):
            entity_sums[entity_slot, k] += gradient[i, k] * relations[relation, k]
            relation_sums[relation_slot, k] += gradient[i, k] * entities[anchor, k]


@dataclass(frozen=True)
class DistMult(CompiledQueries):
    """Query h * r (or t * r: the model is symmetric), compared by inner product; the margin plays no part.

    >>> DistMult().relation_width(128)
    128
    """

    forward = staticmethod(_forward)
    reverse = staticmethod(_reverse)

    name: str = "DistMult"
    comparison: Comparison = DOT

    @classmethod
    def of_shape(cls, shape: ModelShape) -> DistMult:  # noqa: ARG003
        """The scorer for a model of this shape."""
        return cls()

    def entity_width(self, dimension: int) -> int:
        """One number per dimension."""
        return dimension

    def relation_width(self, dimension: int) -> int:
        """One number per dimension."""
        return dimension
