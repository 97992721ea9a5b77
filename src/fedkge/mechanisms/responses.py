"""Randomised response: for each of some possible triples, whether the client holds it, and sometimes a lie."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.noise import NoiseSource

Cells = NDArray[np.int64]

WORDS = 2**63
UPWARDS = 1 + 2**-50
"""Makes good for the rounding of exp and of quotients, so that no answer lies more rarely than it must."""


def flip_chance(epsilon: float) -> float:
    """How often an answer is turned round.

    >>> round(flip_chance(5.0), 4)
    0.0067
    """
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def respond(asked: Cells, held: Cells, epsilon: float, source: NoiseSource) -> Cells:
    """Those of the cells `asked` whose answer is yes; a cell is one possible triple, `held` are the client's own.

    Sensitivity: a triple is one cell, and each cell is asked at most once, so one answer depends on it. Guarantee:
    `Responses(epsilon)`, epsilon-differential privacy without any delta: every answer, yes or no, is turned round
    with a chance of at least 1 / (1 + exp(epsilon)). Which cells are asked must follow from what was released before.
    Proof: docs/proofs/copy.md.

    >>> respond(np.arange(10), np.array([2, 5]), epsilon=20.0, source=NoiseSource.research(1)).tolist()
    [2, 5]
    """
    if len(asked) and (np.diff(asked) <= 0).any():
        raise PrivacyError("expected distinct cells in ascending order, got a cell twice or in another order")
    lies = source.generator.integers(0, WORDS, len(asked)) < math.ceil(WORDS * flip_chance(epsilon) * UPWARDS)
    places = np.minimum(np.searchsorted(held, asked), max(0, len(held) - 1))
    truth = held[places] == asked if len(held) else np.zeros(len(asked), bool)
    return asked[truth ^ lies]
