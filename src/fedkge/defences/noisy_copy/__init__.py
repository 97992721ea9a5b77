"""The noisy copy (`recommended`): a client copies its graph once, with noise, and trains on the copy alone.

First noisy counts (docs/proofs/counts.md), then randomised responses about likely triples (docs/proofs/copy.md). All
that follows is post-processing, so no round costs more.
"""

from __future__ import annotations

from fedkge.defences.noisy_copy.copy_prior import CopyPrior
from fedkge.defences.noisy_copy.noisy_copy import CopyPlan, NoisyCopy

__all__ = ["CopyPlan", "CopyPrior", "NoisyCopy"]
