"""Negated L2 distance: the other TransE."""

from __future__ import annotations

from math import sqrt

from fedkge.models.comparisons import Comparison
from fedkge.models.kernel import kernel

TINY = 1e-20
"""Added under square roots, so that the gradient of a zero distance is zero instead of NaN."""


@kernel
def _against_rows(queries, table, ids, group_size, offset, out):
    count, width = queries.shape
    for group in range(ids.shape[0]):
        first = group * group_size
        for j in range(ids.shape[1]):
            row = ids[group, j]
            for i in range(first, min(first + group_size, count)):
                square = queries.dtype.type(0)
                for k in range(width):
                    difference = queries[i, k] - table[row, k]
                    square += difference * difference
                out[i, j] = offset - sqrt(square)


@kernel
def _against_all(queries, table, offset, out):
    for i in range(queries.shape[0]):
        for row in range(table.shape[0]):
            square = queries.dtype.type(0)
            for k in range(queries.shape[1]):
                difference = queries[i, k] - table[row, k]
                square += difference * difference
            out[i, row] = offset - sqrt(square)


@kernel
def _backward(queries, table, ids, group_size, weights, query_gradient, slots, row_gradient):
    count, width = queries.shape
    tiny = queries.dtype.type(TINY)
    for group in range(ids.shape[0]):
        first = group * group_size
        for j in range(ids.shape[1]):
            row = ids[group, j]
            slot = slots[row]
            for i in range(first, min(first + group_size, count)):
                square = tiny
                for k in range(width):
                    difference = queries[i, k] - table[row, k]
                    square += difference * difference
                scale = weights[i, j] / sqrt(square)
                for k in range(width):
                    slope = scale * (queries[i, k] - table[row, k])
                    query_gradient[i, k] -= slope
                    row_gradient[slot, k] += slope


L2 = Comparison(_against_rows, _against_all, _backward, is_distance=True)
