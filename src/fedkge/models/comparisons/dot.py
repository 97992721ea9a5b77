"""Inner product: DistMult and ComplEx.

Where a group of queries shares its rows, the work is a matrix product and goes to BLAS; for small groups a compiled
loop is faster. Hold BLAS at one thread around training (`threadpoolctl`), as fedkge's own runs do.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.models.comparisons import Comparison
from fedkge.models.kernel import kernel

Numbers: TypeAlias = NDArray[Any]
Ids: TypeAlias = NDArray[np.int32]


PRODUCT_FROM = 8
"""The smallest group for which gathering the rows and multiplying matrices pays."""


def _against_rows(queries: Numbers, table: Numbers, ids: Ids, group_size: int, offset: float, out: Numbers) -> None:
    if group_size < PRODUCT_FROM:
        _loop_against_rows(queries, table, ids, group_size, offset, out)
        return
    for group, rows in enumerate(ids):
        members = slice(group * group_size, (group + 1) * group_size)
        np.matmul(queries[members], table[rows].T, out=out[members])
    if offset:
        out += offset


@kernel
def _loop_against_rows(queries, table, ids, group_size, offset, out):
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


def _against_all(queries: Numbers, table: Numbers, offset: float, out: Numbers) -> None:
    np.matmul(queries, table.T, out=out)
    if offset:
        out += offset


def _backward(
    queries: Numbers,
    table: Numbers,
    ids: Ids,
    group_size: int,
    weights: Numbers,
    query_gradient: Numbers,
    slots: Ids,
    row_gradient: Numbers,
) -> None:
    if group_size < PRODUCT_FROM:
        _loop_backward(queries, table, ids, group_size, weights, query_gradient, slots, row_gradient)
        return
    for group, rows in enumerate(ids):
        members = slice(group * group_size, (group + 1) * group_size)
        query_gradient[members] += weights[members] @ table[rows]
        _scatter(slots[rows], weights[members].T @ queries[members], row_gradient)


@kernel
def _scatter(places, values, out):
    """A row may occur twice in a group, so its parts are added one after the other."""
    for i in range(places.shape[0]):
        for k in range(values.shape[1]):
            out[places[i], k] += values[i, k]


@kernel
def _loop_backward(queries, table, ids, group_size, weights, query_gradient, slots, row_gradient):
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
