"""SimplE (Kazemi and Poole, 2018): score = half of the sum of h1 * r1 * t2 + h2 * r2 * t1."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.dot import DOT
from fedkge.models.kernel import kernel
from fedkge.models.queries import CompiledQueries
from fedkge.models.scorer import ModelShape


@kernel
def _forward(entities, relations, anchors, kinds, direction, out):
    half = out.shape[1] // 2
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        for k in range(half):
            first, second = relations[relation, k], relations[relation, k + half]
            if direction < 0:
                first, second = second, first
            out[i, k] = entities[anchor, k + half] * second / 2
            out[i, k + half] = entities[anchor, k] * first / 2


@kernel
def _reverse(
    entities, relations, anchors, kinds, direction, gradient, entity_slots, entity_sums, relation_slots, relation_sums
):
    half = gradient.shape[1] // 2
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        entity_slot, relation_slot = entity_slots[anchor], relation_slots[relation]
        for k in range(half):
            one, other = (k, k + half) if direction > 0 else (k + half, k)
            entity_sums[entity_slot, k + half] += gradient[i, k] * relations[relation, other] / 2
            entity_sums[entity_slot, k] += gradient[i, k + half] * relations[relation, one] / 2
            relation_sums[relation_slot, other] += gradient[i, k] * entities[anchor, k + half] / 2
            relation_sums[relation_slot, one] += gradient[i, k + half] * entities[anchor, k] / 2


@dataclass(frozen=True)
class SimplE(CompiledQueries):
    """Each entity has a vector as a head and one as a tail; each relation has one for each direction."""

    forward = staticmethod(_forward)
    reverse = staticmethod(_reverse)

    name: str = "SimplE"
    comparison: Comparison = DOT

    @classmethod
    def of_shape(cls, shape: ModelShape) -> SimplE:
        """The scorer for a model of this shape."""
        return cls()

    def entity_width(self, dimension: int) -> int:
        """Two vectors per entity."""
        return 2 * dimension

    def relation_width(self, dimension: int) -> int:
        """Two vectors per relation."""
        return 2 * dimension
