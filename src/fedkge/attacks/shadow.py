"""The shadow attack's classifier: it learns from shadow federations what members and non-members look like.

Numbers in, numbers out. Features of target i in a run are taken as x = a_i + (coin - 1/2) b + e: a level of its own, an
effect b of membership that all targets share, and the randomness e of a training. Shadows come in pairs with opposite
coins, so every target is in exactly half of them. The differences in - out give b and the covariance of e, the targets'
means over the shadows give that of a. Of a new run the score is the log-likelihood ratio of in and out, if all this is
normal: linear in x, with the level shrunk as far as so few shadows can tell it. The effect b, its sign among it, comes
from shadows alone: no feature has to rise with membership.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError, DataError

Numbers = NDArray[np.floating[Any]]
Coins = NDArray[np.bool_]
RIDGE = 1e-6
"""Of a feature's variance, added so that features that say the same do not matter twice."""


def shadow_scores(observed: Numbers, shadows: Numbers, coins: Coins) -> Numbers:
    """One score per target, higher for "in". Shapes: observed (n, d), shadows (K, n, d), coins (K, n).

    >>> coins = np.array([[True, False], [False, True]])
    >>> shadows = np.where(coins, -1.0, 1.0)[:, :, None] + np.array([[[0.1], [0.0]], [[0.0], [0.1]]])
    >>> (shadow_scores(np.array([[-1.0], [1.0]]), shadows, coins) > 0).tolist()
    [True, False]
    """
    check_shadows(len(coins))
    if not (coins[::2] ^ coins[1::2]).all():
        raise DataError("expected shadows in pairs with opposite coins, got a target that both of a pair hold or lack")
    number, width = len(shadows), shadows.shape[2]
    signs = np.where(coins, 1.0, -1.0)[:, :, None]
    differences = (signs * shadows).reshape(number // 2, 2, -1, width).sum(axis=1).reshape(-1, width)
    scale = np.maximum(shadows.reshape(-1, width).std(axis=0), 1e-12)
    differences, levels, new = differences / scale, shadows.mean(axis=0) / scale, observed / scale
    effect, noise = differences.mean(axis=0), _covariance(differences) / 2 + RIDGE * np.eye(width)
    centre = levels.mean(axis=0)
    between = _positive(_covariance(levels) - noise / number)
    shrunk = between @ np.linalg.inv(between + noise / number)
    weights = np.linalg.solve(between + noise - shrunk @ between, effect)
    expected = centre + (levels - centre) @ shrunk.T
    return np.asarray((new - expected) @ weights)


def check_shadows(number: int) -> None:
    """Refuse an odd number of shadows: every target must be in exactly half of them."""
    if number < 2 or number % 2:
        raise ConfigurationError(f"expected an even number of shadow federations, 2 or more, got {number}: --shadows 2")


def _covariance(rows: Numbers) -> Numbers:
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred.T @ centred / len(rows))


def _positive(matrix: Numbers) -> Numbers:
    """The nearest covariance matrix: what an estimate has below zero is zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
