"""The part of delta that tests may fail with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedkge.mechanisms.events import Charge, SampledTest


def failure_mass(charges: Sequence[Charge]) -> float:
    """Rate times delta_t for each step of propose, test, release: delta is what is left (docs/proofs/ptr.md).

    >>> failure_mass([Charge(SampledTest(rate=0.5, gap=1, test=1, gradient=1, failure=2**-20), steps=10)]) * 2**20
    5.0
    """
    tests = [(charge.event, charge.steps) for charge in charges if isinstance(charge.event, SampledTest)]
    return math.fsum(event.rate * event.failure * steps for event, steps in tests)
