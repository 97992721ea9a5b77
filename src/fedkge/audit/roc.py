"""The ROC curve in a bounded number of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedkge.audit.scored import operating_points, split_scores
from fedkge.base.errors import ConfigurationError
from fedkge.base.short_repr import short_repr

ROC_POINTS = 512


@short_repr()
@dataclass(frozen=True, slots=True)
class Roc:
    """Points of the ROC curve from (0, 0) to (1, 1), to be joined by straight lines."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


def roc_curve(scores: ArrayLike, members: ArrayLike, most: int = ROC_POINTS) -> Roc:
    """The ROC curve in at most `most` points.

    Corners are kept exactly while they fit. Beyond that, one half of the points is spread evenly along the curve (the
    area then changes by less than 3 / most, in practice by far less), the other half geometrically over the number of
    false positives 0, 1, 2 ..., so that a plot with logarithmic axes keeps its left end.

    >>> curve = roc_curve([3, 2, 1, 0], [True, True, False, False])
    >>> curve.fpr, curve.tpr
    ((0.0, 0.0, 1.0), (0.0, 1.0, 1.0))
    """
    if most < 16:
        raise ConfigurationError(f"expected at least 16 points for a ROC curve, got {most}")
    inside, outside = split_scores(scores, members)
    _, true, false = operating_points(inside, outside)
    true, false = np.concatenate([[0], true]), np.concatenate([[0], false])
    straight = (true[2:] == true[:-2]) | (false[2:] == false[:-2])  # within a horizontal or a vertical run
    corners = np.concatenate([[True], ~straight, [True]])
    true, false = true[corners], false[corners]
    if len(true) > most:
        length = true / len(inside) + false / len(outside)
        after = np.searchsorted(length, np.linspace(0.0, 2.0, most // 4))
        counts = np.concatenate([[0], np.rint(np.geomspace(1, len(outside), most // 2 - 1))])
        low_end = np.searchsorted(false, counts, side="right") - 1
        chosen = np.unique(np.concatenate([after, np.maximum(after - 1, 0), low_end]))
        true, false = true[chosen], false[chosen]
    return Roc(tuple((false / len(outside)).tolist()), tuple((true / len(inside)).tolist()))
