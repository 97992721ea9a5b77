"""The weight of each client: its claimed number of triples, bounded by what the server has seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
"""Row numbers of a client in the server's table."""

DENSEST = 4
"""A client weighs at most this many times the median client per row."""


def believable_weights(claims: Mapping[str, int], tables: Iterable[Mapping[str, Index]]) -> dict[str, float]:
    """The weight of each client in a weighted mean: its claimed number of triples, up to a bound.

    Nobody can check a claim. But the server has seen which rows a client owns together with others, and triples per
    such row are of the same order everywhere. So a claim counts up to DENSEST times the (lower) median of all clients'
    triples per row, times the client's own rows. Rows of a single owner do not count, because a client can invent
    them. This bounds one client as long as most claims are honest. A claim within the bound counts in full.

    `tables` has the rows of each client in each shared table.

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
    """The number of each client's rows that another client owns too."""
    counts = np.zeros(1 + max((int(rows.max(initial=-1)) for rows in table.values()), default=-1), np.int64)
    for rows in table.values():
        counts[rows] += 1
    return {name: int((counts[rows] > 1).sum()) for name, rows in table.items()}
