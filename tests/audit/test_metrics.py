"""Attack metrics against independent implementations, and the laws that they obey."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from fedkge.audit.f1 import best_f1, calibrated_f1, floor_f1
from fedkge.audit.metrics import attack_metrics, auc, clopper_pearson, needed_non_members, smallest_fpr, tpr_at_fpr
from fedkge.audit.roc import roc_curve
from fedkge.base.errors import ConfigurationError, DataError, NumericalError

Scores = NDArray[np.float64]
Bits = NDArray[np.bool_]
Labelled = tuple[Scores, Bits]


@st.composite
def labelled(draw: st.DrawFn, least: int = 2, most: int = 40) -> Labelled:
    """Scores with many ties, and at least `least` of each kind."""
    inside, outside = draw(st.integers(least, most)), draw(st.integers(least, most))
    spread = draw(st.sampled_from([2, 5, 1000]))
    values = draw(st.lists(st.integers(-spread, spread), min_size=inside + outside, max_size=inside + outside))
    bits = draw(st.permutations([True] * inside + [False] * outside))
    return np.array(values, dtype=np.float64), np.array(bits)


def gaussian(members: int, others: int, shift: float, seed: int, digits: int = 12) -> Labelled:
    random = np.random.default_rng(seed)
    bits = random.permutation(np.arange(members + others) < members)
    return np.round(random.normal(size=len(bits)) + shift * bits, digits), bits


def twin_auc(scores: Scores, bits: Bits) -> float:
    pairs = [(one > two) + 0.5 * (one == two) for one in scores[bits] for two in scores[~bits]]
    return float(sum(pairs)) / len(pairs)


def twin_delong(scores: Scores, bits: Bits, level: float) -> tuple[float, float]:
    """DeLong, DeLong and Clarke-Pearson (1988), word by word."""
    kernel = np.array([[(x > y) + 0.5 * (x == y) for y in scores[~bits]] for x in scores[bits]])
    error = math.sqrt(
        kernel.mean(axis=1).var(ddof=1) / kernel.shape[0] + kernel.mean(axis=0).var(ddof=1) / kernel.shape[1]
    )
    quantile = stats.norm.ppf(0.5 + level / 2)
    return max(0.0, kernel.mean() - quantile * error), min(1.0, kernel.mean() + quantile * error)


def twin_confusion(scores: Scores, bits: Bits, threshold: float) -> tuple[int, int, int]:
    guesses = [score >= threshold for score in scores]
    true = sum(guess and bit for guess, bit in zip(guesses, bits, strict=True))
    return int(true), sum(guesses) - int(true), int(bits.sum()) - int(true)


def twin_f1(scores: Scores, bits: Bits, threshold: float) -> float:
    true, false, missed = twin_confusion(scores, bits, threshold)
    precision, recall = true / max(true + false, 1), true / (true + missed)
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


def twin_tpr(scores: Scores, bits: Bits, fpr: float) -> float:
    best = 0
    for threshold in [*scores, math.inf]:
        true, false, _ = twin_confusion(scores, bits, threshold)
        if false <= round(fpr * 1_000_000) * int((~bits).sum()) / 1_000_000:
            best = max(best, true)
    return best / int(bits.sum())


def area(fpr: tuple[float, ...], tpr: tuple[float, ...]) -> float:
    return float(np.trapezoid(tpr, fpr))


@settings(deadline=None, max_examples=60)
@given(data=labelled())
def test_auc_equals_all_pairs_and_mann_whitney(data: Labelled) -> None:
    scores, bits = data
    value = auc(scores, bits).value
    assert value == pytest.approx(twin_auc(scores, bits), abs=1e-12)
    statistic = stats.mannwhitneyu(scores[bits], scores[~bits], method="asymptotic").statistic
    assert value == pytest.approx(statistic / (bits.sum() * (~bits).sum()), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(data=labelled(), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_auc_interval_is_delong(data: Labelled, level: float) -> None:
    scores, bits = data
    estimate = auc(scores, bits, level)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    low, high = twin_delong(scores, bits, level)
    if high - low > 1e-9:
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(("sign", "value"), [(1, 1.0), (-1, 0.0), (0, 0.5)])
def test_interval_where_delong_has_none(sign: int, value: float) -> None:
    """All pairs ended alike: the exact bound of 30 independent trials, not an interval of width zero."""
    bits = np.arange(80) < 30
    estimate = auc(sign * bits.astype(float), bits)
    low, high = clopper_pearson(0, 30)
    assert estimate.value == value
    expected = {1.0: (1 - high, 1.0), 0.0: (low, high), 0.5: (0.5 - high / 2, 0.5 + high / 2)}[value]
    assert (estimate.low, estimate.high) == pytest.approx(expected, abs=1e-12)


def test_auc_interval_covers_the_truth() -> None:
    """1,000 sets of 150 + 150 from normals with a known AUC of 0.76.

    False-alarm rate: with a true coverage of 95 % the count leaves [925, 975] with probability 0.0004 (binomial).
    """
    truth = stats.norm.cdf(1 / math.sqrt(2))
    assert 1 - np.diff(stats.binom.cdf([924, 975], 1000, 0.95))[0] < 0.0005
    covered = 0
    for seed in range(1000):
        estimate = auc(*gaussian(150, 150, 1.0, seed))
        covered += estimate.low <= truth <= estimate.high
    assert 925 <= covered <= 975


@settings(deadline=None, max_examples=100)
@given(trials=st.integers(1, 3000), share=st.floats(0, 1), level=st.sampled_from([0.9, 0.95, 0.99]))
def test_clopper_pearson_equals_scipy(trials: int, share: float, level: float) -> None:
    successes = round(share * trials)
    interval = stats.binomtest(successes, trials).proportion_ci(level, method="exact")
    assert clopper_pearson(successes, trials, level) == pytest.approx((interval.low, interval.high), abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(data=labelled(least=30, most=60), fpr=st.sampled_from([0.1, 0.15, 0.29, 0.3, 0.5]))
def test_tpr_equals_trying_every_threshold(data: Labelled, fpr: float) -> None:
    scores, bits = data
    found = tpr_at_fpr(scores, bits, fpr)
    expected = twin_tpr(scores, bits, fpr)
    assert found.value == pytest.approx(expected, abs=1e-12)
    interval = stats.binomtest(round(expected * bits.sum()), int(bits.sum())).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_rates_that_the_non_members_cannot_support_are_refused() -> None:
    """500 support 0.6 %, 0.1 % needs 2,995 (ATTACKS.md): the one-sided exact bound when none passes."""
    assert smallest_fpr(500) == pytest.approx(0.006, abs=5e-5)
    assert needed_non_members(0.001) == 2995
    refused = tpr_at_fpr(*gaussian(500, 2994, 1.0, seed=1), 0.001)
    assert (refused.value, refused.low, refused.high) == (None, None, None)
    assert refused.reason == "FPR 0.1% needs 2,995 non-members, got 2,994: they support 0.1%"
    assert tpr_at_fpr(*gaussian(500, 2995, 1.0, seed=1), 0.001).value is not None
    assert tpr_at_fpr(*gaussian(500, 500, 1.0, seed=1), 0.006).value is not None
    assert tpr_at_fpr(*gaussian(500, 500, 1.0, seed=1), 0.005).value is None


@pytest.mark.parametrize("count", [1, 2, 29, 299, 500, 2995])
def test_supported_rate_is_the_exact_bound_for_no_successes(count: int) -> None:
    bound = stats.binomtest(0, count, alternative="less").proportion_ci(0.95, method="exact").high
    assert smallest_fpr(count) == pytest.approx(bound, rel=1e-9)
    assert needed_non_members(smallest_fpr(count) * 1.000001) == count


@settings(deadline=None, max_examples=60)
@given(data=labelled(most=25))
def test_best_f1_equals_trying_every_threshold(data: Labelled) -> None:
    scores, bits = data
    best = best_f1(scores, bits)
    assert best.value == pytest.approx(max(twin_f1(scores, bits, threshold) for threshold in scores), abs=1e-12)
    assert twin_f1(scores, bits, best.threshold) == pytest.approx(best.value, abs=1e-12)
    assert best.value >= floor_f1(int(bits.sum()), int((~bits).sum())) - 1e-12


@settings(deadline=None, max_examples=40)
@given(data=labelled(), other=labelled())
def test_calibrated_f1_takes_its_threshold_from_the_other_triples(data: Labelled, other: Labelled) -> None:
    found = calibrated_f1(*data, *other)
    assert found.threshold == best_f1(*other).threshold
    assert found.value == pytest.approx(twin_f1(*data, found.threshold), abs=1e-12)
    assert found.value <= best_f1(*data).value + 1e-12
    assert found.chosen_on != best_f1(*data).chosen_on


@pytest.mark.parametrize(("members", "others"), [(500, 500), (1, 9), (7, 3)])
def test_floor_is_the_f1_of_everything_exists(members: int, others: int) -> None:
    share = members / (members + others)
    assert floor_f1(members, others) == pytest.approx(2 * share / (1 + share))
    bits = np.arange(members + others) < members
    assert floor_f1(members, others) == pytest.approx(twin_f1(np.zeros(len(bits)), bits, 0.0))


TRANSFORMS: list[Callable[[Scores], Scores]] = [
    lambda scores: 3 * scores - 7,
    lambda scores: scores**3,
    lambda scores: np.exp(scores / 500),
    np.arctan,
]


@settings(deadline=None, max_examples=40)
@given(data=labelled(least=30), transform=st.sampled_from(TRANSFORMS))
def test_monotone_transforms_change_nothing(data: Labelled, transform: Callable[[Scores], Scores]) -> None:
    scores, bits = data
    changed = transform(scores)
    assert auc(scores, bits) == auc(changed, bits)
    assert tpr_at_fpr(scores, bits, 0.1) == tpr_at_fpr(changed, bits, 0.1)
    assert best_f1(scores, bits).value == best_f1(changed, bits).value
    assert roc_curve(scores, bits) == roc_curve(changed, bits)


@settings(deadline=None, max_examples=40)
@given(data=labelled())
def test_swapped_labels_turn_the_auc_round(data: Labelled) -> None:
    scores, bits = data
    one, two = auc(scores, bits), auc(scores, ~bits)
    assert (1 - one.value, 1 - one.high, 1 - one.low) == pytest.approx((two.value, two.low, two.high), abs=1e-12)
    assert auc(-scores, ~bits).value == pytest.approx(one.value)


@settings(deadline=None, max_examples=40)
@given(data=labelled())
def test_small_roc_curves_are_exact(data: Labelled) -> None:
    scores, bits = data
    curve = roc_curve(scores, bits)
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert area(curve.fpr, curve.tpr) == pytest.approx(auc(scores, bits).value, abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("digits", [1, 12])
def test_thinned_roc_curves_keep_the_area_and_the_left_end(shift: float, digits: int) -> None:
    scores, bits = gaussian(4000, 6000, shift, seed=5, digits=digits)
    curve = roc_curve(scores, bits, most=300)
    assert len(curve.fpr) <= 300
    assert (np.diff(curve.fpr) >= 0).all()
    assert (np.diff(curve.tpr) >= 0).all()
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert area(curve.fpr, curve.tpr) == pytest.approx(auc(scores, bits).value, abs=5e-4)
    for allowed in range(10):
        point = max(tpr for fpr, tpr in zip(curve.fpr, curve.tpr, strict=True) if fpr <= allowed / 6000 + 1e-12)
        barrier = np.sort(scores[~bits])[-1 - allowed]
        assert point == pytest.approx(np.mean(scores[bits] > barrier), abs=1e-12)


def test_thinned_area_stays_within_the_stated_bound_on_jagged_curves() -> None:
    """Few large jumps: members and non-members alternate in blocks of growing size."""
    blocks = np.concatenate([np.full(size, size % 2 == 0) for size in range(1, 120)])
    scores = np.arange(len(blocks), dtype=float)
    curve = roc_curve(scores, blocks, most=32)
    assert len(curve.fpr) <= 32
    assert abs(area(curve.fpr, curve.tpr) - auc(scores, blocks).value) < 3 / 32


def test_all_metrics_together_are_plain_json() -> None:
    scores, bits = gaussian(500, 500, 1.0, seed=3)
    metrics = attack_metrics(scores.astype(np.float32), bits, *gaussian(100, 100, 1.0, seed=4))
    read = json.loads(json.dumps(metrics.as_dict(), allow_nan=False))
    assert (read["members"], read["non_members"], read["level"]) == (500, 500, 0.95)
    assert read["floor_f1"] == pytest.approx(2 / 3)
    assert [rate["value"] is None for rate in read["tpr"]] == [False, False, True]
    assert "2,995" in read["tpr"][2]["reason"]
    assert read["best_f1"]["value"] >= read["calibrated_f1"]["value"] > 0.6
    assert attack_metrics(scores, bits).calibrated_f1 is None


@pytest.mark.parametrize("call", [auc, best_f1, roc_curve, attack_metrics, lambda *data: tpr_at_fpr(*data, 0.5)])
def test_scores_that_are_not_numbers_are_an_error(call: Callable[..., object]) -> None:
    scores, bits = np.array([1.0, np.nan, np.inf, 0.0, 2.0]), np.array([1, 0, 1, 0, 1])
    with pytest.raises(NumericalError, match=r"2 of 5 scores are not finite \(1 NaN, 1 infinite\)"):
        call(scores, bits)
    with pytest.raises(NumericalError, match="1 of 4"):
        calibrated_f1([1, 2, 3, 4], [0, 1, 0, 1], [1, 2, -np.inf, 4], [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("scores", "bits", "message"),
    [
        ([1, 2, 3], [1, 0, 0], "got 1 and 2"),
        ([1, 2, 3], [1, 1, 1], "got 3 and 0"),
        ([], [], "got 0 and 0"),
        ([1, 2, 3], [1, 0], r"shapes \(3,\) and \(2,\)"),
        ([[1, 2], [3, 4]], [[1, 0], [1, 0]], "one score and one bit"),
        ([1, 2, 3, 4], [0, 1, 2, 1], "one bit"),
    ],
)
def test_wrong_input_is_an_error(scores: list[int], bits: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        attack_metrics(scores, bits)


def test_impossible_options_are_errors() -> None:
    data = [1, 2, 3, 4], [0, 1, 0, 1]
    for rate in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ConfigurationError, match="false-positive rate"):
            tpr_at_fpr(*data, rate)
        with pytest.raises(ConfigurationError, match="confidence level"):
            auc(*data, level=rate)
    with pytest.raises(ConfigurationError, match="16 points"):
        roc_curve(*data, most=3)
    with pytest.raises(DataError, match="only one of the two"):
        attack_metrics(*data, calibration_scores=[1.0])
    with pytest.raises(DataError, match="successes"):
        clopper_pearson(3, 2)


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_auc_equals_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    scores, bits = gaussian(300, 200, 0.7, seed=8, digits=1)
    assert auc(scores, bits).value == pytest.approx(roc_auc_score(bits, scores), abs=1e-12)
