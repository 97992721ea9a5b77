"""How much of public graphs noisy copies have held: all that is known before a copy is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedkge.base.numbers import percent

REPRODUCE = "python -m benchmarks holds"


@dataclass(frozen=True, slots=True)
class Measured:
    """How much of a public graph, taken as one client, the copies of several seeds held on average."""

    graph: str
    triples: int
    epsilon: float
    answers: float
    """The answers' share of epsilon: what decides how much is believed."""
    share: float
    precision: float


MEASURED = (
    Measured("codex-s", 32_888, 2.0, 0.1, 0.032, 0.73),
    Measured("FB15k-237", 272_115, 2.0, 0.1, 0.007, 0.76),
    Measured("codex-s", 32_888, 4.0, 0.2, 0.052, 0.76),
    Measured("FB15k-237", 272_115, 4.0, 0.2, 0.017, 0.77),
    Measured("codex-s", 32_888, 5.0, 3.75, 0.751, 0.83),
    Measured("FB15k-237", 272_115, 5.0, 3.75, 0.315, 0.81),
    Measured("codex-s", 32_888, 8.0, 6.0, 0.954, 0.94),
    Measured("FB15k-237", 272_115, 8.0, 6.0, 0.606, 0.91),
    Measured("codex-s", 32_888, 16.0, 12.0, 0.998, 1.0),
    Measured("FB15k-237", 272_115, 16.0, 12.0, 0.690, 1.0),
)
"""By `REPRODUCE`; `benchmarks/results/holds.json` has the single seeds, and a test compares the two."""


def measured_elsewhere(answers: float) -> str:
    """How much copies of other graphs held whose answers had about this epsilon: all there is before one is drawn.

    >>> measured_elsewhere(5.9)[:107]
    'Known only once the copy is drawn. On other graphs (one client, epsilon 8, answers of epsilon 6): 95.4 % of'
    """
    nearest = min(MEASURED, key=lambda each: abs(math.log(each.answers / answers))).answers
    those = [each for each in MEASURED if each.answers == nearest]
    held = "; ".join(
        f"{percent(each.share)} of {each.graph}'s triples with precision {each.precision:.2f}" for each in those
    )
    return (
        f"Known only once the copy is drawn. On other graphs (one client, epsilon {those[0].epsilon:g}, answers of "
        f"epsilon {nearest:g}): {held}. Your graph may differ ({REPRODUCE})."
    )
