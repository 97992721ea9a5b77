"""Cells over seeds: means, intervals and paired differences."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from benchmarks.utility.counting import EXACT, SAME_EPSILON

Record = Mapping[str, Any]
Key = tuple[str, str, str, float]
"""Data set, model, row, epsilon."""


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, and half the width of its 95 % interval (of Student; infinite for one seed)."""

    value: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of these numbers, one for each seed.

        >>> Mean.of([0.1, 0.2, 0.3]).text()
        '.200 ± .248'
        >>> Mean.of([0.25]).text()
        '.250'
        """
        count = len(values)
        if count < 2:
            return cls(values[0], math.inf)
        wide = float(stats.t.ppf(0.975, count - 1)) * statistics.stdev(values) / math.sqrt(count)
        return cls(statistics.fmean(values), wide)

    def text(self, sign: str = "") -> str:
        """Three digits, with the interval where there is one."""
        short = f"{self.value:{sign}.3f}".replace("0.", ".", 1)
        return short if math.isinf(self.half) else f"{short} ± {self.half:.3f}".replace(" 0.", " .")


def plain(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """The cells that change no option and were not attacked, by what they have in common."""
    groups: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        if not record["options"] and "outcomes" not in record:
            groups[record["data"], record["model"], record["row"], record["epsilon"]].append(record)
    return groups


def mean_of(records: Sequence[Record], side: str = "both") -> Mean:
    """The models' MRR."""
    return Mean.of([record["test"][side] for record in records])


def counted(groups: Mapping[Key, Sequence[Record]], data: str, epsilon: float) -> Mean | None:
    """Popularity on the same triples, exact for an epsilon of 0; it does not depend on the model."""
    name, by_seed = (SAME_EPSILON if epsilon else EXACT), {}
    for (where, _, _, budget), records in groups.items():
        if where == data and (budget == epsilon or not epsilon):
            by_seed.update({record["seed"]: record["controls"][name]["both"] for record in records})
    return Mean.of(list(by_seed.values())) if by_seed else None


def kept(records: Sequence[Record], undefended: Sequence[Record]) -> Mean | None:
    """Which part of the MRR without a defence is left, seed by seed; None without common seeds."""
    whole = {record["seed"]: record["test"]["both"] for record in undefended}
    parts = [record["test"]["both"] / whole[record["seed"]] for record in records if record["seed"] in whole]
    return Mean.of(parts) if parts else None


def gain(records: Sequence[Record]) -> Mean:
    """By how much a model is above popularity at the same epsilon, seed by seed."""
    return Mean.of([record["test"]["both"] - record["controls"][SAME_EPSILON]["both"] for record in records])
