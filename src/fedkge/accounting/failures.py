"""The part of delta that is used up whatever the noise: tests that fail, names that pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedkge.mechanisms.events import Charge, Names, SampledTest


def failure_mass(charges: Sequence[Charge]) -> float:
    """Rate times delta_t for each step of propose, test, release (docs/proofs/ptr.md), and the chance that a name which
    one triple alone mentions passes (docs/proofs/names.md): delta is what is left.

    >>> failure_mass([Charge(SampledTest(rate=0.5, gap=1, test=1, gradient=1, failure=2**-20), steps=10)]) * 2**20
    5.0
    """
    tests = [(charge.event, charge.steps) for charge in charges if isinstance(charge.event, SampledTest)]
    names = [(charge.event, charge.steps) for charge in charges if isinstance(charge.event, Names)]
    exposed = (event.exposure * steps for event, steps in names)
    return math.fsum((*(event.rate * event.failure * steps for event, steps in tests), *exposed))
