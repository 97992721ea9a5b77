"""Aggregations: rules that turn uploads into the next table. One class per rule, chosen by name.

Server, coordinator and forks use the same object, so a fork aggregates like the real federation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fedkge.base.registry import look_up
from fedkge.federation.claimed_weights import Index
from fedkge.runs.round import Rows

ROWS_AT_ONCE = 4096
"""Float64 sums are computed for this many rows at a time: they stay in the cache, and no table of doubles is needed."""


class Aggregation(Protocol):
    """A rule that turns the uploads of one round into the next table."""

    name: ClassVar[str]
    uses_claims: ClassVar[bool]
    """Whether a client's claimed number of triples changes the result. If so, the server reports doubtful claims."""

    def aggregate(
        self, table: Rows, uploads: Mapping[str, Rows], owners: Mapping[str, Index], claims: Mapping[str, float]
    ) -> Rows:
        """The next table. A row that no client uploaded stays as it is in `table`.

        `owners` has the row numbers of each client in the table; `claims` has the number of triples that each client
        counts for (`claimed_weights`).
        """
        ...


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over the owners of each row, as FedE averages.

    >>> uploads = {"a": np.array([[1.0]], np.float32), "b": np.array([[4.0]], np.float32)}
    >>> owners = {"a": np.array([0]), "b": np.array([0])}
    >>> Mean().aggregate(np.zeros((1, 1), np.float32), uploads, owners, {"a": 1.0, "b": 2.0}).tolist()
    [[2.5]]
    """

    name: ClassVar[str] = "mean"
    uses_claims: ClassVar[bool] = False

    def aggregate(
        self,
        table: Rows,
        uploads: Mapping[str, Rows],
        owners: Mapping[str, Index],
        claims: Mapping[str, float],  # noqa: ARG002
    ) -> Rows:
        """Every owner of a row counts once."""
        return average(table, uploads, owners, dict.fromkeys(uploads, 1.0))


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """The mean over the owners of each row, weighted by the number of triples that each owner counts for.

    >>> uploads = {"a": np.array([[1.0]], np.float32), "b": np.array([[4.0]], np.float32)}
    >>> owners = {"a": np.array([0]), "b": np.array([0])}
    >>> WeightedMean().aggregate(np.zeros((1, 1), np.float32), uploads, owners, {"a": 1.0, "b": 2.0}).tolist()
    [[3.0]]
    """

    name: ClassVar[str] = "weighted"
    uses_claims: ClassVar[bool] = True

    def aggregate(
        self, table: Rows, uploads: Mapping[str, Rows], owners: Mapping[str, Index], claims: Mapping[str, float]
    ) -> Rows:
        """Each client counts in proportion to its triples."""
        return average(table, uploads, owners, {name: claims[name] for name in uploads})


AGGREGATIONS: dict[str, type[Aggregation]] = {rule.name: rule for rule in (Mean, WeightedMean)}


def make_aggregation(name: str) -> Aggregation:
    """The aggregation called `name`, or an error that lists similar names.

    >>> make_aggregation("weighted").uses_claims
    True
    """
    return look_up(AGGREGATIONS, name, "aggregation")()


def covers(places: Index, size: int) -> bool:
    """Whether these are all row numbers from 0 to `size`, in order.

    >>> covers(np.array([0, 1]), 2), covers(np.array([1, 0]), 2)
    (True, False)
    """
    return len(places) == size and bool((places == np.arange(size)).all())


def average(
    table: Rows, uploads: Mapping[str, Rows], owners: Mapping[str, Index], weights: Mapping[str, float]
) -> Rows:
    """Each row's weighted mean over the uploading clients that own it. A row without uploads stays.

    Clients are summed in sorted order and in float64, so the result does not depend on the order of answers, and
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
        sums = np.full(rows.shape, -0.0)  # adding -0.0 leaves every number unchanged, also -0.0
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
