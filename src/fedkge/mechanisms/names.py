"""Names of entities, released once: only those that enough triples mention, by a noisy count and a threshold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.counts import two_sided
from fedkge.mechanisms.events import Names
from fedkge.mechanisms.noise import NoiseSource

DELTA_SHARE = 0.5
"""The part of delta that names may use up; the rest is for what follows."""


def name_event(epsilon: float, delta: float) -> Names:
    """How names are released for this epsilon, and at most half of this delta.

    >>> name_event(epsilon=2.0, delta=1e-5)
    Names(scale=1.0, threshold=14.0)
    """
    scale = Names.scale_for(epsilon)
    alone = DELTA_SHARE * delta / Names.cells  # for each of the names of a triple
    beyond = scale * -math.log(alone * (1 + math.exp(-1 / scale)))
    return Names(scale, max(1, 1 + math.ceil(beyond - 1e-12)))


def released_names(mentions: NDArray[np.int64], event: Names, source: NoiseSource) -> NDArray[np.bool_]:
    """Which names are released, by how many training triples mention each.

    Sensitivity: a triple changes the counts of its two names by one each. Guarantee: epsilon 2 / scale, for names that
    other triples mention too, and delta `event.exposure`, the chance that a name passes which one triple alone
    mentions. Names that no triple mentions get no noise and are never released: a neighbour may not even have them.
    The caller must leave out every triple with a name that was not released. Proof: docs/proofs/names.md.

    >>> mentions = np.array([0, 1, 40, 60])
    >>> released_names(mentions, name_event(2.0, 1e-5), NoiseSource.research(3)).tolist()
    [False, False, True, True]
    """
    if mentions.ndim != 1 or (mentions < 0).any():
        raise PrivacyError(f"expected one number of triples >= 0 per name, got an array of shape {mentions.shape}")
    released = np.zeros(len(mentions), dtype=bool)
    known = np.flatnonzero(mentions)
    noisy = mentions[known] + two_sided(len(known), event.scale, source)
    released[known] = noisy >= event.threshold
    return released
