"""LiRA (Carlini et al., 2022): compare a canary's score with its scores in shadow runs with and without it.

Numbers in, numbers out. With few shadows one spread per canary is noise, so the median of each canary's scores is its
own and the spread of the residuals is one number for all (the form that works below 64 shadows).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Scores
from fedkge.base.errors import DataError

Coins = NDArray[np.bool_]


class Shadows(NamedTuple):
    """Scores of n canaries in K shadow runs, and which of them each run held; both of shape (K, n)."""

    scores: Scores
    coins: Coins


def online(observed: Scores, shadows: Shadows) -> Scores:
    """log N(x; in, spread) - log N(x; out, spread): how much likelier the score is with the canary than without.

    >>> shadows = Shadows(np.array([[1.0], [3.0], [0.0], [2.0]]), np.array([[True], [True], [False], [False]]))
    >>> online(np.array([2.0, ]), shadows).tolist()
    [0.5]
    """
    inside, outside = _medians(shadows, shadows.coins, "with"), _medians(shadows, ~shadows.coins, "without")
    residuals = shadows.scores - np.where(shadows.coins, inside, outside)
    spread = np.sqrt(np.mean(residuals**2)) or 1.0
    ratio: Scores = ((observed - outside) ** 2 - (observed - inside) ** 2) / (2 * spread**2)
    return ratio


def offline(observed: Scores, shadows: Shadows) -> Scores:
    """(x - out) / spread: for an adversary whose shadows never hold the canary; only those runs are used."""
    outside = _medians(shadows, ~shadows.coins, "without")
    residuals = (shadows.scores - outside)[~shadows.coins]
    spread = np.sqrt(np.mean(residuals**2)) or 1.0
    distance: Scores = (observed - outside) / spread
    return distance


def _medians(shadows: Shadows, chosen: Coins, word: str) -> Scores:
    missing = int((~chosen.any(axis=0)).sum())
    if missing:
        raise DataError(
            f"LiRA: {missing} of {chosen.shape[1]} canaries have no shadow run {word} them among {len(chosen)}: "
            "use more shadows (16 or more)"
        )
    medians: Scores = np.nanmedian(np.where(chosen, shadows.scores, np.nan), axis=0)
    return medians
