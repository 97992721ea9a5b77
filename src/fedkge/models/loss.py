"""The self-adversarial negative-sampling loss (Sun et al., 2019), with its gradient by score.

Per triple: L = -log sigmoid(s) - sum_j p_j log sigmoid(-s_j), with p = softmax(temperature * s_j) held constant.
The paper prints the signs for scores that are distances; here, as everywhere in fedkge, a higher score is more
plausible. The loss of a batch is the mean over its triples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]

LIMIT = 80.0
"""Scores are clamped here before an exponential: exp overflows float32 beyond 88."""


class LossGradient(NamedTuple):
    """The loss of a batch and its derivatives by the positive and negative scores."""

    loss: float
    positive: Scores
    negative: Scores


def self_adversarial(positive: Scores, negative: Scores, temperature: float) -> LossGradient:
    """Loss and slopes for scores of shape (B,) and (B, m); temperature 0 weighs all negatives alike.

    >>> result = self_adversarial(np.array([0.0]), np.array([[0.0, 0.0]]), temperature=1.0)
    >>> round(result.loss, 4), result.positive.tolist(), result.negative.tolist()
    (1.3863, [-0.5], [[0.25, 0.25]])
    """
    share = positive.dtype.type(1.0 / len(positive))
    positive_miss, positive_loss = _sigmoid_and_softplus(-positive)
    negative_miss, negative_loss = _sigmoid_and_softplus(negative)
    weights = _softmax(negative, temperature)
    weights *= share
    loss = float(share * positive_loss.sum()) + float(np.vdot(weights, negative_loss))
    negative_miss *= weights
    positive_miss *= -share
    return LossGradient(loss, positive_miss, negative_miss)


def _softmax(scores: Scores, temperature: float) -> Scores:
    weights: Scores = scores - scores.max(axis=1, keepdims=True)
    weights *= temperature
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _sigmoid_and_softplus(scores: Scores) -> tuple[Scores, Scores]:
    """1 / (1 + exp(-x)) and log(1 + exp(x)), by one clamped exponential."""
    growth = np.exp(np.clip(scores, -LIMIT, LIMIT))
    total = growth + 1
    growth /= total
    softplus = np.log(total, out=total)
    if scores.max() > LIMIT:
        softplus += np.maximum(scores - LIMIT, 0)
    return growth, softplus
