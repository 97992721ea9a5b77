"""The median of uploads: one client cannot move a row of three or more owners by more than the others differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedkge.federation.claimed_weights import Index
from fedkge.runs.round import Rows


@dataclass(frozen=True, slots=True)
class Median:
    """The median over the owners of each row, number by number."""

    name: ClassVar[str] = "median"
    uses_claims: ClassVar[bool] = False

    def aggregate(
        self, table: Rows, uploads: Mapping[str, Rows], owners: Mapping[str, Index], claims: Mapping[str, float]
    ) -> Rows:
        """The next table. A row that no client uploaded stays as it is."""
        stacked = np.full((len(uploads), *table.shape), np.nan)
        for number, name in enumerate(sorted(uploads)):
            stacked[number, owners[name]] = uploads[name]
        ordered = np.sort(stacked, axis=0)  # NaN, for a row that a client does not own, comes last
        counts = (~np.isnan(ordered)).sum(axis=0)
        lower, upper = (
            np.take_along_axis(ordered, places[np.newaxis], axis=0)[0] for places in ((counts - 1) // 2, counts // 2)
        )
        return np.where(counts > 0, lower / 2 + upper / 2, table).astype(table.dtype)
