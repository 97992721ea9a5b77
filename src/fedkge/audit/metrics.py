"""How well an attack tells members from non-members: numbers in, numbers out.

Values are real, higher means "in the victim's training set"; a guess is "member" when score >= threshold. Ties count
half in the AUC and are never split by a threshold. All intervals are two-sided at `level` (95 % by default).

Which false-positive rates n non-members support: if a threshold lets none of n pass, all that is known at confidence
`level` is FPR <= 1 - (1 - level)^(1/n), the one-sided exact (Clopper-Pearson) bound, about 3/n at 95 %. So 500
non-members support 0.6 %, and 0.1 % needs 2,995. A smaller rate is refused: its TPR would look like a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from fedkge.audit.f1 import F1, best_f1, calibrated_f1, floor_f1
from fedkge.audit.roc import ROC_POINTS, Roc, roc_curve
from fedkge.audit.scored import Counts, Values, check_share, split_scores
from fedkge.base.errors import DataError
from fedkge.base.short_repr import short_repr

LEVEL = 0.95
RATES = (0.1, 0.01, 0.001)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share between 0 and 1 with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RateAtFpr:
    """The true-positive rate at a false-positive rate of at most `fpr`; None, with the `reason`, where refused."""

    fpr: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@short_repr()
@dataclass(frozen=True, slots=True)
class AttackMetrics:
    """Everything that is reported about one attack on one set of targets.

    `floor_f1` is what guessing "member" every time gives: an F1 says nothing without it.
    """

    members: int
    non_members: int
    level: float
    auc: Estimate
    tpr: tuple[RateAtFpr, ...]
    best_f1: F1
    calibrated_f1: F1 | None
    floor_f1: float
    roc: Roc

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def attack_metrics(
    scores: ArrayLike,
    members: ArrayLike,
    calibration_scores: ArrayLike | None = None,
    calibration_members: ArrayLike | None = None,
    rates: Sequence[float] = RATES,
    level: float = LEVEL,
    roc_points: int = ROC_POINTS,
) -> AttackMetrics:
    """All metrics of one attack; `calibrated_f1` is None without calibration triples.

    >>> metrics = attack_metrics([4.0, 3.0, 1.0, 2.0, 0.0, 0.0], [True, True, True, False, False, False])
    >>> round(metrics.auc.value, 3), round(metrics.best_f1.value, 3), round(metrics.floor_f1, 3)
    (0.889, 0.857, 0.667)
    >>> metrics.tpr[1].value, metrics.tpr[1].reason
    (None, 'FPR 1% needs 299 non-members, got 3: they support 63%')
    """
    inside, outside = split_scores(scores, members)
    if (calibration_scores is None) != (calibration_members is None):
        raise DataError("expected calibration scores together with their membership bits, got only one of the two")
    calibrated = None
    if calibration_scores is not None and calibration_members is not None:
        calibrated = calibrated_f1(scores, members, calibration_scores, calibration_members)
    return AttackMetrics(
        members=len(inside),
        non_members=len(outside),
        level=level,
        auc=auc(scores, members, level),
        tpr=tuple(tpr_at_fpr(scores, members, rate, level) for rate in rates),
        best_f1=best_f1(scores, members),
        calibrated_f1=calibrated,
        floor_f1=floor_f1(len(inside), len(outside)),
        roc=roc_curve(scores, members, roc_points),
    )


def auc(scores: ArrayLike, members: ArrayLike, level: float = LEVEL) -> Estimate:
    """Chance that a member outscores a non-member (ties half), with DeLong's interval, clipped to [0, 1].

    DeLong's variance is zero where all members lie on one side of all non-members, or all scores are equal. There the
    interval comes from min(members, non-members) disjoint pairs instead, independent trials that all ended alike: the
    exact bound on the chance that one ends otherwise. Near those cases DeLong's interval is known to be too short.

    >>> auc([3, 2, 1, 0], [True, False, True, False]).value
    0.75
    >>> [round(end, 3) for end in (lambda e: (e.low, e.high))(auc(np.arange(1000), np.arange(1000) >= 500))]
    [0.993, 1.0]
    """
    inside, outside = split_scores(scores, members)
    check_share(level, "confidence level")
    # Twice the number of opponents that each score beats, ties half: whole numbers, so that equal means equal.
    wins, losses = _doubled_wins(inside, np.sort(outside)), _doubled_wins(outside, np.sort(inside))
    value = int(wins.sum()) / (2 * len(inside) * len(outside))
    variance = float(np.var(wins, ddof=1)) / len(inside) / (2 * len(outside)) ** 2
    variance += float(np.var(losses, ddof=1)) / len(outside) / (2 * len(inside)) ** 2
    if variance > 0.0:
        margin = float(special.ndtri((1.0 + level) / 2.0)) * math.sqrt(variance)
        return Estimate(value, max(0.0, value - margin), min(1.0, value + margin))
    unseen = 1.0 - ((1.0 - level) / 2.0) ** (1.0 / min(len(inside), len(outside)))
    return Estimate(value, value - unseen * value, value + unseen * (1.0 - value))


def clopper_pearson(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact two-sided interval of a binomial share.

    >>> [round(end, 4) for end in clopper_pearson(5, 10)]
    [0.1871, 0.8129]
    """
    check_share(level, "confidence level")
    if not 0 <= successes <= trials or trials < 1:
        raise DataError(f"expected 0 <= successes <= trials and at least 1 trial, got {successes} of {trials}")
    tail = (1.0 - level) / 2.0
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(special.betaincinv(successes + 1, trials - successes, 1.0 - tail))
    return low, high


def smallest_fpr(non_members: int, level: float = LEVEL) -> float:
    """The smallest false-positive rate that so many non-members can support (see the top of this module).

    >>> round(smallest_fpr(500), 4), smallest_fpr(2994) <= 0.001, smallest_fpr(2995) <= 0.001
    (0.006, False, True)
    """
    return -math.expm1(math.log1p(-level) / non_members)


def needed_non_members(fpr: float, level: float = LEVEL) -> int:
    """How many non-members a false-positive rate needs.

    >>> [needed_non_members(rate) for rate in (0.1, 0.01, 0.001)]
    [29, 299, 2995]
    """
    check_share(fpr, "false-positive rate")
    check_share(level, "confidence level")
    return math.ceil(math.log1p(-level) / math.log1p(-fpr))


def tpr_at_fpr(scores: ArrayLike, members: ArrayLike, fpr: float, level: float = LEVEL) -> RateAtFpr:
    """The largest share of members above a threshold that at most `fpr` of the non-members reach.

    No interpolation: the threshold is one that can be used. The Clopper-Pearson interval takes it as given.

    >>> scores = np.concatenate([np.arange(100), np.arange(100) + 50])
    >>> tpr_at_fpr(scores, np.arange(200) >= 100, 0.1).value
    0.6
    """
    inside, outside = split_scores(scores, members)
    needed = needed_non_members(fpr, level)
    if len(outside) < needed:
        supported = f"{len(outside):,}: they support {100 * smallest_fpr(len(outside), level):.2g}%"
        return RateAtFpr(fpr, reason=f"FPR {100 * fpr:g}% needs {needed:,} non-members, got {supported}")
    allowed = math.floor(fpr * len(outside) + 1e-9)  # 0.29 * 100 is a little less than 29
    barrier = np.sort(outside)[len(outside) - 1 - allowed]
    caught = int(np.count_nonzero(inside > barrier))
    return RateAtFpr(fpr, caught / len(inside), *clopper_pearson(caught, len(inside), level))


def _doubled_wins(scores: Values, opponents: Values) -> Counts:
    return np.searchsorted(opponents, scores, side="left") + np.searchsorted(opponents, scores, side="right")
