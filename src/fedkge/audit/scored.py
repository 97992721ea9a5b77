"""Scores with membership bits as they come in: checked, and taken apart into members and non-members."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkge.base.errors import ConfigurationError, DataError, NumericalError

Values: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


def split_scores(scores: ArrayLike, members: ArrayLike) -> tuple[Values, Values]:
    """The scores of the members and of the non-members.

    >>> [part.tolist() for part in split_scores([4, 1, 3, 2], [True, False, True, False])]
    [[4.0, 3.0], [1.0, 2.0]]
    """
    values, bits = np.asarray(scores, dtype=np.float64), np.asarray(members)
    if values.ndim != 1 or values.shape != bits.shape or not np.isin(bits, (0, 1)).all():
        raise DataError(f"expected one score and one bit per triple, got shapes {values.shape} and {bits.shape}")
    if wrong := int(np.count_nonzero(~np.isfinite(values))):
        unknown = int(np.count_nonzero(np.isnan(values)))
        raise NumericalError(
            f"{wrong} of {len(values)} scores are not finite ({unknown} NaN, {wrong - unknown} infinite): the attack "
            "used rows that its view does not hold, or the model diverged; check the targets and the training loss"
        )
    inside, outside = values[bits == 1], values[bits == 0]
    if min(len(inside), len(outside)) < 2:
        raise DataError(
            f"expected at least 2 members and 2 non-members, got {len(inside)} and {len(outside)}: draw more targets"
        )
    return inside, outside


def operating_points(inside: Values, outside: Values) -> tuple[Values, Counts, Counts]:
    """Every distinct score as a threshold, highest first, and how many members and non-members reach it."""
    thresholds = np.unique(np.concatenate([inside, outside]))[::-1]
    true = len(inside) - np.searchsorted(np.sort(inside), thresholds)
    false = len(outside) - np.searchsorted(np.sort(outside), thresholds)
    return thresholds, true, false


def check_share(value: float, what: str) -> None:
    """Refuse a share or a level that is not strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ConfigurationError(f"expected a {what} between 0 and 1, got {value}")
