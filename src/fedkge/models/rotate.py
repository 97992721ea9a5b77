"""RotatE (Sun et al., 2019): score = margin - sum of | h * exp(i phase) - t |."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any

import numpy as np

from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.modulus import MODULUS
from fedkge.models.kernel import kernel
from fedkge.models.queries import CompiledQueries
from fedkge.models.scorer import Known, ModelShape, start_range
from fedkge.models.tables import Tables


@kernel
def _forward(entities, relations, anchors, kinds, scale, out):
    half = out.shape[1] // 2
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        for k in range(half):
            phase = scale * relations[relation, k]
            cosine, sine = cos(phase), sin(phase)
            real, imaginary = entities[anchor, k], entities[anchor, k + half]
            out[i, k] = real * cosine - imaginary * sine
            out[i, k + half] = real * sine + imaginary * cosine


@kernel
def _reverse(
    entities, relations, anchors, kinds, scale, gradient, entity_slots, entity_sums, relation_slots, relation_sums
):
    half = gradient.shape[1] // 2
    for i in range(anchors.shape[0]):
        anchor, relation = anchors[i], kinds[i]
        entity_slot, relation_slot = entity_slots[anchor], relation_slots[relation]
        for k in range(half):
            phase = scale * relations[relation, k]
            cosine, sine = cos(phase), sin(phase)
            real, imaginary = entities[anchor, k], entities[anchor, k + half]
            turned_real = real * cosine - imaginary * sine
            turned_imaginary = real * sine + imaginary * cosine
            slope_real, slope_imaginary = gradient[i, k], gradient[i, k + half]
            entity_sums[entity_slot, k] += slope_real * cosine + slope_imaginary * sine
            entity_sums[entity_slot, k + half] += slope_imaginary * cosine - slope_real * sine
            relation_sums[relation_slot, k] += scale * (slope_imaginary * turned_real - slope_real * turned_imaginary)


@dataclass(frozen=True)
class RotatE(CompiledQueries):
    """Tail query h turned by the relation's phases, head query t turned back, compared by the sum of moduli.

    A relation row p stands for the phases pi * p / `phase_range`, as in the authors' code: the same learning
    rate then suits entities and phases. `phase_range` is the range of the uniform start values.

    >>> RotatE().entity_width(128), RotatE().relation_width(128)
    (256, 128)
    """

    forward = staticmethod(_forward)
    reverse = staticmethod(_reverse)

    phase_range: float = 12 / 128
    name: str = "RotatE"
    comparison: Comparison = MODULUS

    @classmethod
    def of_shape(cls, shape: ModelShape) -> RotatE:
        """The scorer for a model of this shape."""
        return cls(phase_range=start_range(shape))

    def entity_width(self, dimension: int) -> int:
        """A real and an imaginary part per dimension."""
        return 2 * dimension

    def relation_width(self, dimension: int) -> int:
        """One phase per dimension."""
        return dimension

    def factor(self, tables: Tables, known: Known) -> np.floating[Any]:
        """Phases per unit of a relation row, negative to turn back for a missing head."""
        return tables.entities.dtype.type(known.direction * pi / self.phase_range)
