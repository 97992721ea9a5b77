"""Gaussian numbers from raw random words, in one pass with their scaling and rounding: half the time of NumPy's loop.

The ziggurat of Marsaglia and Tsang (2000), as in NumPy, with 256 layers: of a word, 8 bits choose the layer, one the
sign and 52 the magnitude, none of them twice. Exact for real numbers: a rejected or tail draw takes further words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.mechanisms.compiled import strict

LAYERS = 256
TAIL = 3.6541528853610088
"""Where the tail begins: the one number for which 256 layers of equal area close at the top."""
RESERVE = 130
"""Words that a draw finds ahead of it. A try in the tail takes two and succeeds more than nine times in ten, so that
64 tries in vain have a probability below 2**-200; such a draw would be made again."""


def _edges() -> NDArray[np.float64]:
    """The right edges of the layers, from the base (of the width that its area with the tail needs) to the top, 0."""
    area = TAIL * math.exp(-0.5 * TAIL**2) + math.sqrt(math.pi / 2) * math.erfc(TAIL / math.sqrt(2))
    edges = [area / math.exp(-0.5 * TAIL**2), TAIL]
    for _ in range(LAYERS - 2):
        edges.append(math.sqrt(-2 * math.log(area / edges[-1] + math.exp(-0.5 * edges[-1] ** 2))))
    return np.array([*edges, 0.0])


EDGES = _edges()
HEIGHTS = np.exp(-0.5 * EDGES**2)
SIGNED_WIDTHS = np.concatenate([EDGES[:-1], -EDGES[:-1]]) * 2.0**-52
"""By the lowest 9 bits of a word: the layer, and above it the sign."""
INSIDE = np.tile((EDGES[1:] / EDGES[:-1] * 2.0**52).astype(np.int64), 2)
"""Magnitudes below this lie under the curve without a further look."""


def words_for(numbers: int) -> int:
    """How many words most likely suffice."""
    return numbers + numbers // 32 + 2 * RESERVE


@strict
def _uniform(word: np.uint64) -> float:
    """Strictly between 0 and 1."""
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53


@strict
def _look_closer(words: NDArray[np.uint64], at: int, layer: int, number: float) -> tuple[int, float, bool]:
    """A draw that is not surely under the curve: the place of the next word, the number, and whether it counts."""
    if layer > 0:
        low, high = HEIGHTS[layer], HEIGHTS[layer + 1]
        height = low + _uniform(words[at]) * (high - low)
        return at + 1, number, height < math.exp(-0.5 * number * number)
    while at < words.shape[0] - 1:
        beyond = -math.log(_uniform(words[at])) / TAIL
        height = -math.log(_uniform(words[at + 1]))
        at += 2
        if 2 * height > beyond * beyond:
            return at, math.copysign(TAIL + beyond, number), True
    return at, 0.0, False


@strict
def release_on_grid(
    words: NDArray[np.uint64],
    sums: NDArray[np.float64],
    places: NDArray[np.int32],
    out: NDArray[np.floating[Any]],
    first: int,
    deviation: float,
    step: float,
    batch: float,
) -> int:
    """Put N(0, deviation**2) plus row `places[i]` of `sums` (nothing where that is negative), rounded to multiples of
    `step` and divided by `batch`, into row i of `out`.

    Begins with number `first` of `out`, row by row, and goes on while `words` last; returns the number after the last.
    Words that are left over must not be used again. Answers with -1 to a place beyond the sums.
    """
    at, last, steps, scale = 0, words.shape[0] - RESERVE, 1 / step, step / batch
    row, column = first // out.shape[1], first % out.shape[1]
    while row < out.shape[0] and at < last:
        place = places[row]
        if place >= sums.shape[0]:
            return -1
        while column < out.shape[1] and at < last:
            choice = np.int64(words[at] & np.uint64(2 * LAYERS - 1))
            magnitude = np.int64(words[at] >> np.uint64(12))
            number, good = np.float64(magnitude) * SIGNED_WIDTHS[choice], True
            at += 1
            if magnitude >= INSIDE[choice]:
                at, number, good = _look_closer(words, at, choice % LAYERS, number)
            if good:
                number *= deviation
                if place >= 0:
                    number += sums[place, column]
                out[row, column] = np.rint(number * steps) * scale
                column += 1
        if column == out.shape[1]:
            row, column = row + 1, 0
    return int(row * out.shape[1] + column)
