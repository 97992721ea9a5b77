"""The size of a client's graph, released once with geometric noise; whatever needs a public size uses that number."""

from __future__ import annotations

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.counts import two_sided
from fedkge.mechanisms.events import Size
from fedkge.mechanisms.noise import NoiseSource

SIZE_EPSILON = 0.05
"""What a size costs: noise of scale 20, whose standard deviation is 28 triples."""
SIZE_SHARE = 0.02
"""Of a budget so small that this share of it is less than SIZE_EPSILON, the size costs this share."""


def size_event(budget: float | None) -> Size:
    """How a size is released under this epsilon; without a budget it costs SIZE_EPSILON.

    >>> size_event(8.0).scale, size_event(None).scale, round(size_event(1.0).scale)
    (20.0, 20.0, 50)
    """
    return Size(Size.scale_for(SIZE_EPSILON if budget is None else min(SIZE_EPSILON, SIZE_SHARE * budget)))


def noisy_size(triples: int, event: Size, source: NoiseSource) -> int:
    """The number of triples plus two-sided geometric noise, and 1 where that would be less.

    Sensitivity: adding or removing one triple changes the number by one. Guarantee: the noisy number costs `event`,
    which is pure epsilon 1 / scale; the bound from below is post-processing. The number is drawn once and written
    down before it is used: a second draw would cost as much again. Proof: docs/proofs/size.md.

    >>> noisy_size(1000, size_event(8.0), NoiseSource.research(7))
    997
    """
    if triples < 0:
        raise PrivacyError(f"expected a number of triples >= 0, got {triples}")
    return max(1, int(triples) + int(two_sided(1, event.scale, source)[0]))
