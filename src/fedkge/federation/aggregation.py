"""What the server does with uploads: refuse bad ones, average the good ones over the owners of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.federation.messages import Rows

Index = NDArray[np.int64]
"""Places of a client's rows in the server's table."""


def complaint(rows: Any, expected: tuple[int, int], largest_norm: float) -> str | None:
    """Why an uploaded table must be refused, or None when it is fine.

    >>> complaint(np.array([[np.nan]], np.float32), (1, 1), 10.0)
    '1 of 1 rows hold numbers that are not finite'
    """
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float32:
        return f"expected a float32 table, got {getattr(rows, 'dtype', type(rows).__name__)}"
    if rows.shape != expected:
        return f"expected shape {expected}, got {rows.shape}"
    broken = int((~np.isfinite(rows)).any(axis=1).sum())
    if broken:
        return f"{broken} of {len(rows)} rows hold numbers that are not finite"
    norms = np.linalg.norm(rows, axis=1)
    if len(norms) and norms.max() > largest_norm:
        return f"row norm {norms.max():.3g} exceeds the largest allowed, {largest_norm:g}"
    return None


def average(
    table: Rows, uploads: Mapping[str, Rows], owners: Mapping[str, Index], weights: Mapping[str, float]
) -> Rows:
    """Each row's weighted mean over the uploading clients that own it; a row that nobody uploaded stays.

    Clients are summed in sorted order and in float64, so the result does not depend on who answered first and
    the mean of equal rows is that row.

    >>> upload, owner = np.array([[2.0]], np.float32), np.array([1])
    >>> average(np.zeros((2, 1), np.float32), {"a": upload}, {"a": owner}, {"a": 1.0}).tolist()
    [[0.0], [2.0]]
    """
    names: Sequence[str] = sorted(uploads)
    result = table.copy()
    if len(names) == 1:
        result[owners[names[0]]] = uploads[names[0]]
        return result
    sums = np.zeros(table.shape, dtype=np.float64)
    totals = np.zeros(len(table), dtype=np.float64)
    for name in names:
        sums[owners[name]] += weights[name] * uploads[name].astype(np.float64)
        totals[owners[name]] += weights[name]
    delivered = totals > 0
    result[delivered] = (sums[delivered] / totals[delivered, None]).astype(np.float32)
    return result
