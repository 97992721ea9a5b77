"""What a client knows beside its embedding: noisy counts, paid for once, and the scores that follow from them."""

from __future__ import annotations

from fedkge.defences.counts.count_prior import CountPrior
from fedkge.defences.counts.released import ReleasedCounts

__all__ = ["CountPrior", "ReleasedCounts"]
