"""A noisy copy of a client's graph, paid for once; all training that follows sees the copy alone."""

from __future__ import annotations

from fedkge.defences.noisy_copy.copy_prior import CopyPrior
from fedkge.defences.noisy_copy.noisy_copy import CopyPlan, NoisyCopy

__all__ = ["CopyPlan", "CopyPrior", "NoisyCopy"]
