"""Each selection equals its definition, row by row or with the same coins.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.base.registry import look_up
from fedkge.mechanisms import (
    SELECTIONS,
    Adafest,
    Dense,
    DensePublished,
    Fest,
    NoiseSource,
    Ptr,
    PtrPublished,
    Selected,
    Selection,
    Touched,
)
from fedkge.mechanisms.events import (
    Event,
    Gaussian,
    PublishedGaussian,
    PublishedTest,
    SampledGaussian,
    SampledPair,
    SampledTest,
)
from fedkge.mechanisms.fest import degrees
from fedkge.mechanisms.selection import rows_outside
from tests.cases.selections import CLIP, SelectionCase, touched_of, touched_values
from tests.statistical import detectors
from tests.statistical.detectors import alarms

TESTS = {"batch": 64, "gap_multiplier": 2.0, "test_multiplier": 3.0, "failure": 1e-6}


class TestDense(SelectionCase):
    name = "dense"

    def by_hand(self) -> Selection:
        return Dense()

    def costs(self) -> Event:
        return SampledGaussian(0.1, 1.0)


class TestAdafest(SelectionCase):
    name = "adafest"

    def by_hand(self) -> Selection:
        return Adafest(1.0, 0.5)

    def costs(self) -> Event:
        return SampledPair(0.1, selection=1.0, gradient=1.0)


class TestFest(SelectionCase):
    name = "fest"

    def by_hand(self) -> Selection:
        return Fest(np.array([3, 1], np.int32))

    def costs(self) -> Event:
        return SampledGaussian(0.1, 1.0)


class TestPtr(SelectionCase):
    name = "ptr"

    def by_hand(self) -> Selection:
        return Ptr(CLIP, 2, 0.1, 0.1, 0.4)

    def costs(self) -> Event:
        return SampledTest(0.1, gap=0.1, test=0.1, gradient=1.0, failure=0.4)


class TestPtrPublished(SelectionCase):
    name = "ptr-published"
    is_private = False

    def by_hand(self) -> Selection:
        return PtrPublished(CLIP, 2, 0.1, 0.1, 0.4)

    def costs(self) -> Event:
        return PublishedTest(0.1, gap=0.1, test=0.1, gradient=1.0, failure=0.4, passed=1.0)


class TestDensePublished(SelectionCase):
    name = "dense-published"
    is_private = False

    def by_hand(self) -> Selection:
        return DensePublished()

    def costs(self) -> Event:
        return PublishedGaussian(0.1, 1.0)


@given(touched=touched_values)
def test_rows_outside_are_the_complement(touched: Touched) -> None:
    outside = [row for row in range(touched.table) if row not in set(touched.rows.tolist())]
    assert rows_outside(touched.rows, np.arange(len(outside))).tolist() == outside


def test_dense_takes_all_rows() -> None:
    selected = Dense().select(touched_of({}, 4), NoiseSource.research(0))
    assert selected.rows.tolist() == [0, 1, 2, 3]
    assert selected.passed is None


def adafest_law(adafest: Adafest, counts: list[int]) -> np.ndarray:
    """The probability of every set of rows, as bits, when each row is tested by a Gaussian of its own."""
    passes = stats.norm.sf(adafest.threshold, loc=counts, scale=math.sqrt(2) * adafest.selection_multiplier)
    bits = (np.arange(2 ** len(counts))[:, None] >> np.arange(len(counts))) & 1
    return np.where(bits, passes, 1 - passes).prod(axis=1)


def test_adafest_chooses_every_set_of_rows_as_often_as_by_noise_on_all_counts() -> None:
    adafest, source = Adafest(selection_multiplier=0.8, threshold=1.5), NoiseSource.research(4)
    touched = touched_of({4: 1.0, 1: 1.0}, 5, counts=[3, 1])
    sets = np.zeros(2**5)
    for _ in range(20_000):
        sets[(1 << adafest.select(touched, source).rows.astype(np.int64)).sum()] += 1
    assert not alarms(detectors.pattern(sets, adafest_law(adafest, [0, 1, 0, 0, 3])))


def test_false_positives_of_adafest_are_binomial_and_uniform() -> None:
    adafest, source, table, draws = Adafest(1.0, 3.0), NoiseSource.research(5), 14_541, 400
    touched = touched_of(dict.fromkeys(range(0, 400, 2), 1.0), table, counts=[1] * 200)
    found = [np.setdiff1d(adafest.select(touched, source).rows, touched.rows) for _ in range(draws)]
    untouched, rate = table - 200, float(stats.norm.sf(3.0 / math.sqrt(2)))
    assert adafest.false_positive_rate == pytest.approx(rate)
    sizes = np.array([len(rows) for rows in found])
    assert not alarms(detectors.share(int(sizes.sum()), untouched * draws, rate))
    scaled = (sizes - untouched * rate) / math.sqrt(untouched * rate * (1 - rate))
    assert not alarms(detectors.variance(scaled, 1.0))
    edges = np.linspace(0, table, 51).astype(int)
    free = np.setdiff1d(np.arange(table), touched.rows)
    per_bin = np.histogram(free, edges)[0] / untouched
    assert not alarms(detectors.pattern(np.histogram(np.concatenate(found), edges)[0], per_bin))


@given(total=st.floats(0.1, 50), share=st.floats(0.01, 0.99))
def test_adafest_splits_a_multiplier_without_loss(total: float, share: float) -> None:
    selection, gradient = Adafest.split(total, share)
    event = Adafest(selection, 3.0).event(0.1, gradient)
    assert event.multiplier == pytest.approx(total)
    assert selection**-2 == pytest.approx(share * total**-2)


def test_fest_reads_one_noisy_histogram() -> None:
    triples = np.array([[0, 0, 1], [2, 0, 2], [2, 1, 2], [2, 0, 1]], np.int32)
    assert degrees(triples, 4).tolist() == [1, 2, 3, 0]
    source, draws = NoiseSource.research(6), 4_000
    first = sum(Fest.of_histogram(triples[:2], 2 + 1, 1, 0.7, source).rows.tolist() == [2] for _ in range(draws))
    assert not alarms(detectors.share(first, draws, 1 / 3))  # three rows of degree 1, one of them kept
    fest = Fest.of_histogram(triples, 4, 2, 0.7, source)
    assert fest.events_once() == (Gaussian(0.7),)
    assert Fest(np.array([1], np.int32)).events_once() == ()


def ptr_by_brute_force(selection: Ptr | PtrPublished, touched: Touched, source: NoiseSource) -> Selected:
    """All rows sorted, all gaps taken, one Gumbel for each candidate: the definition, at the cost of the table."""
    norms = np.zeros(touched.table)
    norms[touched.rows] = touched.norms
    order = sorted(range(touched.table), key=lambda row: (-norms[row], row))
    ranked = norms[order]
    numbers = [j for j in range(1, touched.table) if selection.batch <= j <= 2 * selection.batch]
    gumbel = source.gumbel(len(numbers), 2 * 0.8 * selection.gap_multiplier)
    noisy = [ranked[j - 1] - ranked[j] + gumbel[i] for i, j in enumerate(numbers)]
    k = numbers[int(np.argmax(noisy))]
    sound = isinstance(selection, Ptr)
    bound = min(2 * 0.8, math.sqrt(2) * 1.2) if sound else 0.8
    z = stats.norm.isf(selection.failure) if sound else math.sqrt(2 * math.log(1 / selection.failure))
    deviation = selection.test_multiplier * bound
    gap = ranked[k - 1] - ranked[k]
    passed = max(bound, gap) + source.gaussian(1, deviation)[0] - deviation * z > bound
    return Selected(np.array(sorted(order[:k]) if passed else [], np.int32), bool(passed))


@settings(max_examples=300, deadline=None)
@given(
    touched=touched_values,
    batch=st.integers(1, 4),
    sound=st.booleans(),
    multiplier=st.sampled_from([0.01, 0.3, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_ptr_equals_brute_force_with_the_same_coins(
    touched: Touched, batch: int, sound: bool, multiplier: float, seed: int
) -> None:
    selection = (Ptr if sound else PtrPublished)(CLIP, batch, multiplier, multiplier, failure=0.3)
    got = selection.select(touched, NoiseSource.research(seed))
    expected = ptr_by_brute_force(selection, touched, NoiseSource.research(seed))
    assert got.passed == expected.passed
    assert got.rows.tolist() == expected.rows.tolist()


@pytest.mark.parametrize("gap", [0.0, 1.59])
def test_without_a_gap_the_sound_test_passes_with_its_failure_probability(gap: float) -> None:
    selection, source, draws = Ptr(CLIP, 1, failure=0.05), NoiseSource.research(7), 10_000
    touched = touched_of({3: gap}, 10)
    passed = sum(bool(selection.select(touched, source).passed) for _ in range(draws))
    assert not alarms(detectors.share(passed, draws, 0.05))


def test_a_wide_gap_passes_and_releases_the_rows_above_it() -> None:
    norms = dict.fromkeys((9, 4, 6), 100.0)
    selected = Ptr(CLIP, batch=2, failure=1e-6).select(touched_of({**norms, 1: 0.5}, 50), NoiseSource.research(8))
    assert selected.passed
    assert selected.rows.tolist() == [4, 6, 9]


def test_a_batch_as_large_as_the_table_leaves_nothing_to_test() -> None:
    with pytest.raises(PrivacyError, match="smaller"):
        Ptr(CLIP, batch=10).select(touched_of({}, 10), NoiseSource.research(0))


def test_every_test_costs_what_its_numbers_say() -> None:
    assert Adafest(5.0, 2.0).event(0.1, 1) == SampledPair(0.1, selection=5.0, gradient=1.0)
    noise = {"gap": 2.0, "test": 3.0, "gradient": 1.0, "failure": 1e-6}
    assert Ptr(CLIP, **TESTS).event(0.1, 1) == SampledTest(0.1, **noise)
    assert PtrPublished(CLIP, **TESTS).event(0.1, 1) == PublishedTest(0.1, **noise, passed=1.0)


def test_an_unknown_selection_names_the_near_ones() -> None:
    with pytest.raises(ConfigurationError, match="adafest"):
        look_up(SELECTIONS, "adafst", "selection")
