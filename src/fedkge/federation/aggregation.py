"""What the server does with uploads: refuse bad ones, average the good ones over the owners of each row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.runs.round import Rows

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


DENSEST = 4
"""A client weighs at most so many times as much per row as the median client."""


def believable_weights(claims: Mapping[str, int], tables: Iterable[Mapping[str, Index]]) -> dict[str, float]:
    """What each client weighs in a weighted mean: its claimed number of triples, as far as alignment bears it out.

    Nobody can check a claim. But the server has seen which rows a client owns together with others, and triples per
    such row are of the same order everywhere. So a claim counts up to DENSEST times the (lower) median of all clients'
    triples per row, times the client's own rows. Rows that nobody else owns do not count: they can be invented. This
    bounds one client as long as most claims are honest. A claim that is within the bound counts as it is.

    `tables` has the rows of each client in each table that is shared.

    >>> entities = {"a": np.arange(10), "b": np.arange(10), "c": np.arange(10)}
    >>> believable_weights({"a": 2**53 - 1, "b": 30, "c": 50}, [entities])
    {'a': 200.0, 'b': 30.0, 'c': 50.0}
    """
    rows = dict.fromkeys(claims, 0)
    for table in tables:
        for name, number in _rows_with_others(table).items():
            rows[name] += number
    densities = sorted(Fraction(claims[name], rows[name]) for name in claims if rows[name])
    if len(densities) < 2:
        return {name: float(claim) for name, claim in claims.items()}
    densest = DENSEST * densities[(len(densities) - 1) // 2]
    bounds = {name: float(densest * number) if number else math.inf for name, number in rows.items()}
    return {name: min(float(claim), bounds[name]) for name, claim in claims.items()}


def _rows_with_others(table: Mapping[str, Index]) -> dict[str, int]:
    """How many of each client's rows another client owns too."""
    counts = np.zeros(1 + max((int(rows.max(initial=-1)) for rows in table.values()), default=-1), np.int64)
    for rows in table.values():
        counts[rows] += 1
    return {name: int((counts[rows] > 1).sum()) for name, rows in table.items()}


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
