"""Negated L1 distance: TransE as FedE and the RotatE authors train it."""

from __future__ import annotations

from fedkge.models.comparisons import Comparison
from fedkge.models.kernel import kernel


@kernel
def _against_rows(queries, table, ids, group_size, offset, out):
    count, width = queries.shape
    for group in range(ids.shape[0]):
        first = group * group_size
        for j in range(ids.shape[1]):
            row = ids[group, j]
            for i in range(first, min(first + group_size, count)):
                distance = queries.dtype.type(0)
                for k in range(width):
                    distance += abs(queries[i, k] - table[row, k])
                out[i, j] = offset - distance


@kernel
def _against_all(queries, table, offset, out):
    for i in range(queries.shape[0]):
        for row in range(table.shape[0]):
            distance = queries.dtype.type(0)
            for k in range(queries.shape[1]):
                distance += abs(queries[i, k] - table[row, k])
            out[i, row] = offset - distance


@kernel
def _backward(queries, table, ids, group_size, weights, query_gradient, slots, row_gradient):
    count, width = queries.shape
    for group in range(ids.shape[0]):
        first = group * group_size
        for j in range(ids.shape[1]):
            row = ids[group, j]
            slot = slots[row]
            for i in range(first, min(first + group_size, count)):
                weight = weights[i, j]
                for k in range(width):
                    slope = weight if queries[i, k] > table[row, k] else -weight
                    query_gradient[i, k] -= slope
                    row_gradient[slot, k] += slope


L1 = Comparison(_against_rows, _against_all, _backward, is_distance=True)
