"""F1 by how its threshold was chosen, and the floor that guessing "member" every time reaches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedkge.audit.scored import operating_points, split_scores


@dataclass(frozen=True, slots=True)
class F1:
    """An F1, the threshold it was reached with, and on which triples that threshold was chosen."""

    value: float
    threshold: float
    chosen_on: str


def best_f1(scores: ArrayLike, members: ArrayLike) -> F1:
    """The best F1 of any threshold: chosen on the very triples that it is measured on, as the paper does.

    >>> best_f1([3, 2, 1, 0], [True, False, True, False])
    F1(value=0.8, threshold=1.0, chosen_on='the test set itself')
    """
    inside, outside = split_scores(scores, members)
    thresholds, true, false = operating_points(inside, outside)
    values = 2.0 * true / (true + false + len(inside))
    best = int(np.argmax(values))
    return F1(float(values[best]), float(thresholds[best]), "the test set itself")


def calibrated_f1(
    scores: ArrayLike, members: ArrayLike, calibration_scores: ArrayLike, calibration_members: ArrayLike
) -> F1:
    """The F1 at the threshold that was best on other triples: what an attacker could really reach.

    >>> calibrated_f1([3, 2, 1, 0], [True, False, True, False], [9, 3, 1, 0], [True, True, False, False]).threshold
    3.0
    """
    inside, outside = split_scores(scores, members)
    threshold = best_f1(calibration_scores, calibration_members).threshold
    true, false = np.count_nonzero(inside >= threshold), np.count_nonzero(outside >= threshold)
    return F1(float(2.0 * true / (true + false + len(inside))), threshold, "calibration triples")


def floor_f1(members: int, non_members: int) -> float:
    """The F1 of "everything exists": 2p / (1 + p) for a share p of members.

    >>> round(floor_f1(500, 500), 3)
    0.667
    """
    return 2.0 * members / (2.0 * members + non_members)
