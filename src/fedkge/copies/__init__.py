"""A noisy copy of a client's graph, paid for once; all training that follows sees the copy alone."""

from __future__ import annotations

from fedkge.copies.copy_prior import CopyPrior
from fedkge.copies.noisy_copy import CopyPlan, NoisyCopy

__all__ = ["CopyPlan", "CopyPrior", "NoisyCopy"]
