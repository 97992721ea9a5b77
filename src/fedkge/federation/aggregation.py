"""What the server does with uploads: refuse bad ones, average the good ones over the owners of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.federation.messages import Rows

Index = NDArray[np.int64]
"""Places of a client's rows in the server's table."""

ROWS_AT_ONCE = 4096
"""Sums are kept in float64 for this many rows at a time: they stay in the cache, and no table of doubles is needed."""


def complaint(rows: Any, expected: tuple[int, int], largest_norm: float) -> str | None:
    """Why an uploaded table must be refused, or None when it is fine.

    >>> complaint(np.array([[np.nan]], np.float32), (1, 1), 10.0)
    '1 of 1 rows hold numbers that are not finite'
    """
    return misfit(rows, expected) or excess(rows, largest_norm)


def misfit(rows: Any, expected: tuple[int, int]) -> str | None:
    """Why this is not a table of the right kind, or None when it is."""
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float32:
        return f"expected a float32 table, got {getattr(rows, 'dtype', type(rows).__name__)}"
    if rows.shape != expected:
        return f"expected shape {expected}, got {rows.shape}"
    return None


def excess(rows: Rows, largest_norm: float) -> str | None:
    """How a table shows that its training has diverged, or None when it does not."""
    # In float64 no finite float32 row overflows, so a sum that is not finite tells of a number that is not.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    broken = len(rows) - int(np.isfinite(squares).sum())
    if broken:
        return f"{broken} of {len(rows)} rows hold numbers that are not finite"
    largest = float(np.sqrt(squares.max(initial=0.0)))
    if largest > largest_norm:
        return f"row norm {largest:.3g} exceeds the largest allowed, {largest_norm:g}"
    return None


def covers(places: Index, size: int) -> bool:
    """Whether these are all places from 0 to `size`, in order.

    >>> covers(np.array([0, 1]), 2), covers(np.array([1, 0]), 2)
    (True, False)
    """
    return len(places) == size and bool((places == np.arange(size)).all())


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
    if len(names) == 1 and covers(owners[names[0]], len(table)):
        return uploads[names[0]]
    result = table.copy()
    borders = np.arange(0, len(table) + ROWS_AT_ONCE, ROWS_AT_ONCE)
    orders = {name: np.argsort(owners[name]) for name in names}
    cuts = {name: np.searchsorted(owners[name], borders, sorter=orders[name]) for name in names}
    for block, first in enumerate(borders[:-1]):
        rows = result[first : first + ROWS_AT_ONCE]
        sums = np.full(rows.shape, -0.0)  # the zero that leaves every number as it is, -0.0 too
        totals = np.zeros((len(rows), 1))
        for name in names:
            sent = orders[name][cuts[name][block] : cuts[name][block + 1]]
            places = owners[name][sent] - first
            sums[places] += np.multiply(weights[name], uploads[name][sent], dtype=np.float64)
            totals[places] += weights[name]
        delivered = totals > 0
        np.divide(sums, totals, out=sums, where=delivered)
        np.copyto(rows, sums, where=delivered, casting="same_kind")
    return result
