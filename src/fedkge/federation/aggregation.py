"""What the server does with uploads: refuse bad ones, average the good ones over the owners of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.federation.messages import Rows

Index = NDArray[np.int64]
"""Places of a client's rows in the server's table."""

COLUMNS_AT_ONCE = 16
"""Sums are kept in float64 for this many columns at a time, so that a large table needs no second one of doubles."""


def complaint(rows: Any, expected: tuple[int, int], largest_norm: float) -> str | None:
    """Why an uploaded table must be refused, or None when it is fine.

    >>> complaint(np.array([[np.nan]], np.float32), (1, 1), 10.0)
    '1 of 1 rows hold numbers that are not finite'
    """
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float32:
        return f"expected a float32 table, got {getattr(rows, 'dtype', type(rows).__name__)}"
    if rows.shape != expected:
        return f"expected shape {expected}, got {rows.shape}"
    # In float64 no finite float32 row overflows, so a sum that is not finite tells of a number that is not.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    broken = len(rows) - int(np.isfinite(squares).sum())
    if broken:
        return f"{broken} of {len(rows)} rows hold numbers that are not finite"
    largest = float(np.sqrt(squares.max(initial=0.0)))
    if largest > largest_norm:
        return f"row norm {largest:.3g} exceeds the largest allowed, {largest_norm:g}"
    return None


def average(
    table: Rows, uploads: Mapping[str, Rows], owners: Mapping[str, Index], weights: Mapping[str, float]
) -> Rows:
    """Each row's weighted mean over the uploading clients that own it; a row that nobody uploaded stays.

    Clients are summed in sorted order and in float64, so the result does not depend on who answered first and
    the mean of equal rows is that row, bit for bit.

    >>> upload, owner = np.array([[2.0]], np.float32), np.array([1])
    >>> average(np.zeros((2, 1), np.float32), {"a": upload}, {"a": owner}, {"a": 1.0}).tolist()
    [[0.0], [2.0]]
    """
    names = sorted(uploads)
    totals = np.zeros((len(table), 1))
    for name in names:
        totals[owners[name]] += weights[name]
    delivered = totals > 0
    result = table.copy()
    for first in range(0, table.shape[1], COLUMNS_AT_ONCE):
        columns = slice(first, first + COLUMNS_AT_ONCE)
        sums = np.full(table[:, columns].shape, -0.0)  # the zero that leaves every number as it is, -0.0 too
        for name in names:
            sums[owners[name]] += np.multiply(weights[name], uploads[name][:, columns], dtype=np.float64)
        np.divide(sums, totals, out=sums, where=delivered)
        np.copyto(result[:, columns], sums, where=delivered, casting="same_kind")
    return result
