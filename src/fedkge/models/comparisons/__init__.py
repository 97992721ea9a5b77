"""How a query vector is compared with entity rows: the compiled inner loops of training and ranking.

Every model of fedkge maps (head, relation) or (tail, relation) to a query vector and compares it with
candidate rows. A comparison is three compiled kernels. Shapes: B queries of width w, a table of n rows of
width w, and ids of shape (G, m): group g of `group_size` consecutive queries shares the m rows `ids[g]`,
so independent negatives are groups of one. No kernel allocates; outputs never alias inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three kernels of one similarity (higher means more alike).

    against_rows(queries, table, ids, group_size, offset, out)
        out[i, j] = offset + similarity of query i and table[ids[i // group_size, j]].
    against_all(queries, table, offset, out)
        out[i, j] = offset + similarity of query i and table[j].
    backward(queries, table, ids, group_size, weights, query_gradient, slots, row_gradient)
        Adds weights[i, j] times the similarity's gradient to query_gradient[i] and to
        row_gradient[slots[id]].
    """

    against_rows: Callable[..., Any]
    against_all: Callable[..., Any]
    backward: Callable[..., Any]
    is_distance: bool
    """Whether the similarity is a negated distance, so that a margin makes sense."""
