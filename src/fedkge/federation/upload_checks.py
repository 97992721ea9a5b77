"""Checks of an uploaded table: its type, its shape, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkge.runs.round import Rows


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
    """The sign in a table that training has diverged, or None."""
    # In float64 no finite float32 row overflows, so a sum is not finite only if a number is not.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    broken = len(rows) - int(np.isfinite(squares).sum())
    if broken:
        return f"{broken} of {len(rows)} rows hold numbers that are not finite"
    largest = float(np.sqrt(squares.max(initial=0.0)))
    if largest > largest_norm:
        return f"row norm {largest:.3g} exceeds the largest allowed, {largest_norm:g}"
    return None
