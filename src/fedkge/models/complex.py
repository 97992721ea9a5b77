"""ComplEx (Trouillon et al., 2016): score = real part of the sum of h * r * conjugate(t)."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.dot import DOT
from fedkge.models.kernel import kernel
from fedkge.models.queries import CompiledQueries
from fedkge.models.scorer import ModelShape


@kernel
def _forward(entities, relations, anchors, kinds, sign, out):
    half = out.shape[1] // 2
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        for k in range(half):
            real, imaginary = entities[anchor, k], entities[anchor, k + half]
            factor_real, factor_imaginary = relations[relation, k], sign * relations[relation, k + half]
            out[i, k] = real * factor_real - imaginary * factor_imaginary
            out[i, k + half] = real * factor_imaginary + imaginary * factor_real


@kernel
def _reverse(
    entities, relations, anchors, kinds, sign, gradient, entity_slots, entity_sums, relation_slots, relation_sums
):
    half = gradient.shape[1] // 2
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        entity_slot, relation_slot = entity_slots[anchor], relation_slots[relation]
        for k in range(half):
            real, imaginary = entities[anchor, k], entities[anchor, k + half]
            factor_real, factor_imaginary = relations[relation, k], sign * relations[relation, k + half]
            slope_real, slope_imaginary = gradient[i, k], gradient[i, k + half]
            entity_sums[entity_slot, k] += slope_real * factor_real + slope_imaginary * factor_imaginary
            entity_sums[entity_slot, k + half] += slope_imaginary * factor_real - slope_real * factor_imaginary
            relation_sums[relation_slot, k] += slope_real * real + slope_imaginary * imaginary
            relation_sums[relation_slot, k + half] += sign * (slope_imaginary * real - slope_real * imaginary)


@dataclass(frozen=True)
class ComplEx(CompiledQueries):
    """Tail query h * r, head query t * conjugate(r), compared by the real inner product; no margin.

    A row holds the real parts in its first half and the imaginary parts in its second.

    >>> ComplEx().entity_width(128)
    256
    """

    forward = staticmethod(_forward)
    reverse = staticmethod(_reverse)

    name: str = "ComplEx"
    comparison: Comparison = DOT

    @classmethod
    def of_shape(cls, shape: ModelShape) -> ComplEx:  # noqa: ARG003
        """The scorer for a model of this shape."""
        return cls()

    def entity_width(self, dimension: int) -> int:
        """A real and an imaginary part per dimension."""
        return 2 * dimension

    def relation_width(self, dimension: int) -> int:
        """A real and an imaginary part per dimension."""
        return 2 * dimension
