"""Targets with their membership bits, and the five designs by which they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.base.registry import look_up
from fedkge.base.short_repr import short_repr
from fedkge.graph import Triples, no_triples

Design: TypeAlias = Literal["A", "B", "C", "D", "R"]
Membership: TypeAlias = Literal["half", "coins"]
Bits: TypeAlias = NDArray[np.bool_]

DESIGNS: dict[str, str] = {
    "A": "real against uniform random",
    "B": "real against held-out real",
    "C": "inserted canaries against random",
    "D": "real against type-consistent corruption",
    "R": "real, left in by a coin against real, taken out by a coin",
}


@short_repr("design")
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Triples with their membership bits, and others, disjoint from them, on which a threshold may be chosen."""

    design: Design
    triples: Triples
    members: Bits
    calibration_triples: Triples = field(default_factory=no_triples)
    calibration_members: Bits = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __post_init__(self) -> None:
        look_up(DESIGNS, self.design, "design of targets")
        pairs = ((self.triples, self.members), (self.calibration_triples, self.calibration_members))
        for triples, bits in pairs:
            if triples.dtype != np.int32 or triples.shape != (len(bits), 3) or bits.dtype != np.bool_:
                raise DataError(
                    f"expected int32 triples of shape (n, 3) with n bits, got {triples.dtype} {triples.shape} "
                    f"with {bits.dtype} {bits.shape}"
                )

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def everything(self) -> Triples:
        """Targets and calibration triples in one table."""
        return np.concatenate([self.triples, self.calibration_triples])

    @property
    def inserted(self) -> Triples:
        """The members of both kinds: in design C what must be added to the victim's training triples."""
        return np.concatenate([self.triples[self.members], self.calibration_triples[self.calibration_members]])


def tossed(
    design: Design, triples: Triples, count: int, membership: Membership, random: np.random.Generator
) -> Targets:
    """The first `count` of these triples as targets, the others for calibration: half of each, or by one coin each."""
    bits = []
    for size in (count, len(triples) - count):
        half = random.permutation(np.arange(size) < size // 2)
        bits.append(half if membership == "half" else random.integers(0, 2, size).astype(np.bool_))
    return Targets(design, triples[:count], bits[0], triples[count:], bits[1])
