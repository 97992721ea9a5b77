"""Negated sum of complex moduli: RotatE as its authors, FedE and LibKGE define it.

A row holds the real parts in its first half and the imaginary parts in its second.
"""

from __future__ import annotations

from math import sqrt

from fedkge.models.comparisons import Comparison
from fedkge.models.comparisons.l2 import TINY
from fedkge.models.kernel import kernel


@kernel
def _against_rows(queries, table, ids, group_size, offset, out):
    count = queries.shape[0]
    half = queries.shape[1] // 2
    for group in range(ids.shape[0]):
        first = group * group_size
        for j in range(ids.shape[1]):
            row = ids[group, j]
            for i in range(first, min(first + group_size, count)):
                distance = queries.dtype.type(0)
                for k in range(half):
                    real = queries[i, k] - table[row, k]
                    imaginary = queries[i, k + half] - table[row, k + half]
                    distance += sqrt(real * real + imaginary * imaginary)
                out[i, j] = offset - distance


@kernel
def _against_all(queries, table, offset, out):
    half = queries.shape[1] // 2
    for i in range(queries.shape[0]):
        for row in range(table.shape[0]):
            distance = queries.dtype.type(0)
            for k in range(half):
                real = queries[i, k] - table[row, k]
                imaginary = queries[i, k + half] - table[row, k + half]
                distance += sqrt(real * real + imaginary * imaginary)
            out[i, row] = offset - distance


@kernel
def _backward(queries, table, ids, group_size, weights, query_gradient, slots, row_gradient):
    count = queries.shape[0]
    half = queries.shape[1] // 2
    tiny = queries.dtype.type(TINY)
    for group in range(ids.shape[0]):
        first = group * group_size
        for j in range(ids.shape[1]):
            row = ids[group, j]
            slot = slots[row]
            for i in range(first, min(first + group_size, count)):
                weight = weights[i, j]
                for k in range(half):
                    real = queries[i, k] - table[row, k]
                    imaginary = queries[i, k + half] - table[row, k + half]
                    scale = weight / sqrt(real * real + imaginary * imaginary + tiny)
                    query_gradient[i, k] -= scale * real
                    query_gradient[i, k + half] -= scale * imaginary
                    row_gradient[slot, k] += scale * real
                    row_gradient[slot, k + half] += scale * imaginary


MODULUS = Comparison(_against_rows, _against_all, _backward, is_distance=True)
