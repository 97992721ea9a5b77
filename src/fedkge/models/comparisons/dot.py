"""Inner product: DistMult and ComplEx."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
                product = queries.dtype.type(0)
                for k in range(width):
                    product += queries[i, k] * table[row, k]
                out[i, j] = offset + product


def _against_all(queries: NDArray[Any], table: NDArray[Any], offset: float, out: NDArray[Any]) -> None:
    np.matmul(queries, table.T, out=out)
    if offset:
        out += offset


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
                    query_gradient[i, k] += weight * table[row, k]
                    row_gradient[slot, k] += weight * queries[i, k]


DOT = Comparison(_against_rows, _against_all, _backward, is_distance=False)
