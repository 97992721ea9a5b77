"""The self-adversarial negative-sampling loss (Sun et al., 2019), with its gradient by score.

Per triple: L = -log sigmoid(s) - sum_j p_j log sigmoid(-s_j), with p = softmax(temperature * s_j) held constant.
The paper prints the signs for scores that are distances; here, as everywhere in fedkge, a higher score is more
plausible. The loss of a batch is the mean over its triples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

LIMIT = 80.0
"""Scores are clamped here before an exponential: exp overflows float32 beyond 88."""


class LossGradient(NamedTuple):
    """The loss of a batch and its derivatives by the positive and negative scores."""

    loss: float
    positive: Floats
    negative: Floats


def self_adversarial(positive: Floats, negative: Floats, temperature: float) -> LossGradient:
    """Loss and slopes for scores of shape (B,) and (B, m); temperature 0 weighs all negatives alike.

    >>> result = self_adversarial(np.array([0.0]), np.array([[0.0, 0.0]]), temperature=1.0)
    >>> round(result.loss, 4), result.positive.tolist(), result.negative.tolist()
    (1.3863, [-0.5], [[0.25, 0.25]])
    """
    share = positive.dtype.type(1.0 / len(positive))
    growth, total, excess = _exponentials(negative)
    plain = temperature == 1.0 and excess is None
    weights = growth / growth.sum(axis=1, keepdims=True) if plain else _softmax(negative, temperature)
    weights *= share
    growth /= total
    growth *= weights
    lost, lost_total, lost_excess = _exponentials(-positive)
    lost /= lost_total
    lost *= -share
    loss = float(share * _softplus(lost_total, lost_excess).sum()) + float(np.vdot(weights, _softplus(total, excess)))
    return LossGradient(loss, lost, growth)


def triple_slopes(positive: Floats, negative: Floats, temperature: float) -> tuple[Floats, Floats]:
    """The slopes of each triple's own loss, by its positive score and by its negative ones (there may be none).

    What a triple gives does not depend, to the last bit, on which triples stand beside it: every step here works on
    numbers or rows alone. The bound on one triple's influence rests on that.

    >>> [slopes.tolist() for slopes in triple_slopes(np.array([0.0]), np.array([[0.0, 0.0]]), temperature=1.0)]
    [[-0.5], [[0.25, 0.25]]]
    """
    pull = -_sigmoid(-positive)
    if not negative.shape[1]:
        return pull, np.empty_like(negative)
    return pull, _softmax(negative, temperature) * _sigmoid(negative)


def negative_slopes(negative: Floats, temperature: float) -> Floats:
    """The slopes by the negative scores alone, for negatives that belong to no positive triple.

    >>> negative_slopes(np.array([[0.0, 0.0]]), temperature=1.0).tolist()
    [[0.25, 0.25]]
    """
    growth = np.exp(np.clip(negative, -LIMIT, LIMIT))
    plain = temperature == 1.0 and float(np.abs(negative).max(initial=0)) <= LIMIT
    slopes: Floats = growth / growth.sum(axis=1, keepdims=True) if plain else _softmax(negative, temperature)
    slopes *= growth
    growth += 1
    slopes /= growth
    slopes *= negative.dtype.type(1.0 / len(negative))
    return slopes


def _exponentials(scores: Floats) -> tuple[Floats, Floats, Floats | None]:
    """exp(x) and 1 + exp(x) of clamped scores, and what was cut off above (None where nothing was cut off)."""
    clamped = np.clip(scores, -LIMIT, LIMIT)
    growth = np.exp(clamped)
    excess = None if np.array_equal(clamped, scores) else np.maximum(scores - clamped, 0)
    return growth, growth + 1, excess


def _sigmoid(scores: Floats) -> Floats:
    """1 / (1 + exp(-x)) of clamped scores, number by number."""
    result: Floats = 1 / (1 + np.exp(-np.clip(scores, -LIMIT, LIMIT)))
    return result


def _softplus(total: Floats, excess: Floats | None) -> Floats:
    """log(1 + exp(x)), beyond the clamp x itself."""
    logarithm: Floats = np.log(total, out=total)
    return logarithm if excess is None else logarithm + excess


def _softmax(scores: Floats, temperature: float) -> Floats:
    weights: Floats = scores - scores.max(axis=1, keepdims=True)
    weights *= temperature
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
