"""Releases before the choice of noise use basic composition, because the noise of all later releases depends on them.

Tight composition requires that the parameters of each release are fixed beforehand. The parameters of a defence (rate,
steps, noise, shares, delta) follow from the noisy size and from the number of released names. Both releases have a
bounded loss. Given any outcome, the other releases stay within the remaining epsilon. So the bounds add up.
Proof: docs/proofs/composition.md, "What is released before noise is chosen".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedkge.accounting.accountants import merged
from fedkge.mechanisms.events import Charge, Names, Size


def apart(charges: Sequence[Charge]) -> tuple[float, tuple[Charge, ...]]:
    """The epsilon of sizes and names, and the other charges. (What names take of delta is a failure's.)

    >>> apart([Charge(Size(20)), Charge(Names(scale=1, threshold=14))])
    (2.05, ())
    """
    pure, rest = [], []
    for charge in merged(charges):
        if isinstance(charge.event, Size | Names):
            pure.append(charge.event.sensitivity * charge.steps / charge.event.scale)
        else:
            rest.append(charge)
    return math.fsum(pure), tuple(rest)
