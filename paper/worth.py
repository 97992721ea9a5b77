"""How well a federation ranks, and how well counting alone would: the controls that stand in every table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paper.cells import Cell, Column, Key
from paper.points import Cells

POPULARITY, PRIVATE_POPULARITY = "popularity", "popularity, epsilon 1"
CONTROLS = (POPULARITY, PRIVATE_POPULARITY)
_STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t for 95 %, by the number of seeds."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """MRR and Hits as the paper prints them: tails alone, of triples whose names the client has trained on."""

    mrr: float
    hits_at_1: float
    hits_at_10: float


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds; the interval is None where there is one seed."""

    value: float
    low: float | None
    high: float | None
    seeds: int


@dataclass(frozen=True, slots=True)
class Sides:
    """MRR of every test triple, by what is asked for."""

    tail: Mean
    head: Mean
    both: Mean
    seen_tail: Mean
    """Ranked as in the paper, to be held against it."""


@dataclass(frozen=True, slots=True)
class Control:
    """What counting how often an entity occurs with a relation reaches, without and with noise for epsilon 1."""

    data: str
    name: str
    published: Ranked | None
    sound: Sides | None


@dataclass(frozen=True, slots=True)
class Worth:
    """One attacked federation beside the controls of its own clients; tail MRR as published, both-sided as sound."""

    data: str
    model: str
    tail: float | None
    both: float | None
    popularity: tuple[float | None, float | None]
    private_popularity: tuple[float | None, float | None]


def mean(values: Sequence[float]) -> Mean:
    """With a 95 % interval by Student's t.

    >>> mean([0.2]), round(mean([0.1, 0.2, 0.3]).high, 3)
    (Mean(value=0.2, low=None, high=None, seeds=1), 0.448)
    """
    count, centre = len(values), sum(values) / len(values)
    if count not in _STUDENT:
        return Mean(centre, None, None, count)
    spread = math.sqrt(sum((value - centre) ** 2 for value in values) / (count - 1))
    reach = _STUDENT[count] * spread / math.sqrt(count)
    return Mean(centre, centre - reach, centre + reach, count)


def ranked(metrics: Mapping[str, Mapping[str, float]]) -> Ranked | None:
    """As published; None where nothing was trained."""
    seen = metrics.get("seen")
    return Ranked(seen["tail.mrr"], seen["tail.hits_at_1"], seen["tail.hits_at_10"]) if seen else None


def sides(several: Sequence[Mapping[str, Mapping[str, float]]]) -> Sides | None:
    """Sound, over seeds; None where nothing was trained."""
    found = [metrics for metrics in several if metrics.get("all")]
    if not found:
        return None
    tail, head, both = (mean([one["all"][f"{side}.mrr"] for one in found]) for side in ("tail", "head", "both"))
    return Sides(tail, head, both, mean([one["seen"]["tail.mrr"] for one in found]))


def controls_of(data: str, cells: Cells) -> tuple[Control, ...]:
    """The controls of a data set, each column with those of its own clients: the first cell that has them."""

    def of(column: Column, name: str) -> Mapping[str, Mapping[str, float]]:
        found = (cells[key].controls.get(name, {}) for key in ordered(data, column, cells))
        return next((metrics for metrics in found if metrics), {})

    return tuple(Control(data, name, ranked(of("published", name)), sides([of("sound", name)])) for name in CONTROLS)


def ordered(data: str, column: Column, cells: Cells) -> list[Key]:
    """A data set's cells, undefended ones and the first seed first."""
    found = [key for key in cells if (key.data, key.column) == (data, column)]
    return sorted(found, key=lambda key: (key.defence != "none", key.seed, key))


def worth_of(data: str, model: str, cell: Cell | None) -> Worth:
    """One federation beside its controls.

    >>> worth_of("fb15k-237", "transe", None).tail is None
    True
    """

    def both(metrics: Mapping[str, Mapping[str, float]]) -> tuple[float | None, float | None]:
        tail, sound = ranked(metrics), sides([metrics])
        return (tail.mrr if tail else None, sound.both.value if sound else None)

    own = both(cell.utility if cell else {})
    exact, noisy = (both(cell.controls.get(name, {}) if cell else {}) for name in CONTROLS)
    return Worth(data, model, *own, exact, noisy)
