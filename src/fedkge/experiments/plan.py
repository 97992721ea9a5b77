"""What to attack in a recorded run: by whom, with what, on which targets, after which rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fedkge.experiments.cia import CIA
from fedkge.experiments.shadow_attack import SHADOWS
from fedkge.experiments.shadows import ShadowPlan
from fedkge.experiments.targets import Design


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """What to attack, by whom, with what."""

    attacks: tuple[str, ...] = ()
    """Names of attacks; none means all that fit the run."""
    designs: tuple[Design, ...] = ("A", "B", "C", "D")
    every: int = 5
    count: int = 500
    fewer: bool = False
    """Whether fewer than `count` targets are enough where a graph has no more (for design B they always are)."""
    calibration: int = 100
    auxiliary: int = 20
    victim: str = "client-0"
    adversary: str = "client-1"
    seed: int = 0
    threads: int = 1
    cia: CIA = field(default_factory=CIA)
    shadows: ShadowPlan = field(default_factory=ShadowPlan)
    real_shadows: ShadowPlan = SHADOWS
    """The shadow federations of the attack on real triples."""


def attacked_rounds(recorded: Sequence[int], every: int) -> list[int]:
    """The recorded rounds to attack: every so many, and always the last.

    >>> attacked_rounds([1, 2, 3, 4, 5, 6, 7], 3)
    [3, 6, 7]
    """
    chosen = [number for number in recorded if number % every == 0]
    return chosen if chosen and chosen[-1] == recorded[-1] else [*chosen, recorded[-1]]
