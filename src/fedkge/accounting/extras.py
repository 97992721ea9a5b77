"""Releases beyond the rounds, such as a figure: each promises its own epsilon on top of the run's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedkge.mechanisms.events import Charge


@dataclass(frozen=True)
class Extra:
    """One release: what it is called, what it promises and costs, and what it drew (None before it is kept).

    The epsilon is that of a release without any delta, so it adds to the promise of the rounds by plain composition.
    """

    name: str
    epsilon: float
    charges: tuple[Charge, ...]
    value: Mapping[str, int] | None = None
