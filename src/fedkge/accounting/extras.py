"""Releases beyond the rounds, such as a figure: each promises its own epsilon on top of the run's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedkge.mechanisms.events import Charge


@dataclass(frozen=True)
class Extra:
    """One release: what it is called, what it promises and costs, and what it drew (None before it is kept).

    The epsilon is that of a release without any delta, so it adds to the promise of the rounds by plain composition.

    >>> from fedkge.mechanisms.events import Responses
    >>> extra = Extra("test", 1.0, (Charge(Responses(1.0)),))
    >>> Extra.of_record(extra.record("client-0")) == extra
    True
    """

    name: str
    epsilon: float
    charges: tuple[Charge, ...]
    value: Mapping[str, int] | None = None

    def record(self, client: str) -> dict[str, Any]:
        """The line that promises and charges it."""
        charges = [charge.record() for charge in self.charges]
        return {"kind": "extra", "client": client, "name": self.name, "epsilon": self.epsilon, "charges": charges}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Extra:
        """What a line promised and charged."""
        charges = tuple(Charge.of_record(charge) for charge in record["charges"])
        return cls(str(record["name"]), float(record["epsilon"]), charges)
