"""The part of a scorer that its two compiled kernels do: from what is known of a triple to a query, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fedkge.models.scorer import Known
from fedkge.models.tables import Gradients, Table, Tables


class CompiledQueries:
    """Queries and their gradient by kernels that all models give the same signature.

    forward(entities, relations, anchors, relation_ids, factor, out)
        out[i] = the query of anchors[i] and relation_ids[i].
    reverse(entities, relations, anchors, relation_ids, factor, slope, entity_slots, entity_gradient, relation_slots,
            relation_gradient)
        Adds the gradient of the queries to the gradient rows of anchors and relations.
    """

    forward: ClassVar[Callable[..., Any]]
    reverse: ClassVar[Callable[..., Any]]

    def factor(self, tables: Tables, known: Known) -> np.floating[Any]:
        """The number that tells the kernels the direction: 1 for a missing tail, -1 for a missing head."""
        return tables.entities.dtype.type(known.direction)

    def queries(self, tables: Tables, known: Known) -> Table:
        """One query vector per triple, as wide as an entity row."""
        out = np.empty((len(known.anchors), tables.entities.shape[1]), dtype=tables.entities.dtype)
        factor = self.factor(tables, known)
        self.forward(tables.entities, tables.relations, known.anchors, known.relations, factor, out)
        return out

    def backward(self, tables: Tables, known: Known, slope: Table, into: Gradients) -> None:
        """Carry the gradient of the queries on to the rows of anchors and relations (already touched)."""
        self.reverse(
            tables.entities,
            tables.relations,
            known.anchors,
            known.relations,
            self.factor(tables, known),
            slope,
            into.entities.slots,
            into.entities.values,
            into.relations.slots,
            into.relations.values,
        )
