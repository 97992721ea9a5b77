"""Noisy counts: what one triple changes, the law of the noise, what it costs, and bugs that must be noticed.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from fedkge.accounting.pld import PLDAccountant
from fedkge.accounting.promises import covers
from fedkge.accounting.rdp import RDPAccountant, response_divergence
from fedkge.base.errors import PrivacyError
from fedkge.defences.counts.released import CountPlan, ReleasedCounts, profile_cells, typed_cells
from fedkge.mechanisms import counts as mechanism
from fedkge.mechanisms.counts import NoisyCounts, threshold_for, two_sided
from fedkge.mechanisms.events import Charge, Geometric, SampledGaussian
from fedkge.mechanisms.noise import NoiseSource
from tests.statistical import detectors
from tests.statistical.detectors import alarms

ENTITIES, RELATIONS, TYPES = 6, 3, 2
triples_of_a_graph = st.sets(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)), min_size=1
)


def probabilities(scale: float, furthest: int) -> list[float]:
    """Of -furthest to furthest; the first and the last hold all beyond."""
    fall = math.exp(-1 / scale)
    inside = [(1 - fall) / (1 + fall) * fall ** abs(k) for k in range(1 - furthest, furthest)]
    tail = fall**furthest / (1 + fall)
    return [tail, *inside, tail]


def histogram(values: np.ndarray, furthest: int) -> np.ndarray:
    return np.bincount(np.clip(values, -furthest, furthest) + furthest, minlength=2 * furthest + 1)


@given(triples=triples_of_a_graph, types=st.lists(st.integers(0, TYPES - 1), min_size=ENTITIES, max_size=ENTITIES))
def test_one_triple_changes_two_cells_by_one(triples, types):
    with_all = np.array(sorted(triples))
    kinds = np.array(types, np.int32)
    for size, cells_of in (
        (2 * RELATIONS * ENTITIES, lambda some: profile_cells(some, ENTITIES, RELATIONS)),
        (2 * RELATIONS * ENTITIES * TYPES, lambda some: typed_cells(some, kinds, TYPES, ENTITIES, RELATIONS)),
    ):
        whole = np.bincount(cells_of(with_all).ravel(), minlength=size)
        less = np.bincount(cells_of(with_all[1:]).ravel(), minlength=size)
        assert sorted((whole - less).tolist())[-3:] == [0, 1, 1]
        assert len(whole) == size


def test_types_are_found_in_what_was_released(monkeypatch):
    """The profile's noise is drawn before types are looked for, and they see nothing else."""
    seen = []
    monkeypatch.setattr(
        "fedkge.defences.counts.released.find_types",
        lambda profile, _: seen.append(profile) or np.zeros(profile.entities, np.int32),
    )
    triples = np.array([[0, 0, 1], [1, 0, 2], [0, 0, 1]], np.int32)
    released = ReleasedCounts.draw(triples, 3, 1, CountPlan(1.0, 1.0, TYPES), NoiseSource.research(1))
    rows = [row for profile in seen for row in profile.rows]
    assert [row.entities.tolist() for row in rows] == [
        (released.profile.keys[released.profile.keys // 3 == number] - 3 * number).tolist() for number in range(2)
    ]


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0])
def test_the_noise_is_two_sided_geometric(scale):
    drawn = two_sided(200_000, scale, NoiseSource.research(2))
    furthest = math.ceil(4 * scale)
    assert not alarms(detectors.pattern(histogram(drawn, furthest), probabilities(scale, furthest)))


def released_alone(source: NoiseSource, size: int = 100_000, scale: float = 1.0) -> NoisyCounts:
    """Of one triple, in a large table."""
    return NoisyCounts.release(np.array([[5, 9]]), size, scale, source)


def empty_cells(counts: NoisyCounts) -> np.ndarray:
    """How many empty cells were released with each count from the threshold on, five more, and not at all."""
    false = counts.values[~np.isin(counts.keys, (5, 9))]
    kept = np.bincount(np.minimum(false - counts.threshold, 5), minlength=6)
    return np.append(kept, counts.size - 2 - len(false))


def law_of_empty_cells(scale: float, threshold: int) -> list[float]:
    fall = math.exp(-1 / scale)
    from_the_threshold = [fall ** (threshold + k) / (1 + fall) for k in range(6)] + [0.0]
    kept = [left - right for left, right in pairwise(from_the_threshold)]
    return [*kept, 1 - from_the_threshold[0]]


def test_empty_cells_get_the_same_noise_without_being_drawn_one_by_one():
    counts = released_alone(NoiseSource.research(4))
    assert not alarms(detectors.pattern(empty_cells(counts), law_of_empty_cells(1.0, counts.threshold)))
    assert len(np.unique(counts.keys)) == len(counts.keys)
    halves = np.count_nonzero(counts.keys < counts.size // 2)
    assert not alarms(detectors.share(halves, len(counts.keys), 0.5))


class HalfTheScale(NoiseSource):
    """A planted bug: geometric noise at half its scale."""

    @property
    def generator(self):
        honest = super().generator

        class Sharper:
            def geometric(self, stop, size):
                return honest.geometric(1 - (1 - stop) ** 2, size)

            def __getattr__(self, name):
                return getattr(honest, name)

        return Sharper()


def test_half_the_noise_is_noticed():
    drawn = two_sided(200_000, 1.0, HalfTheScale(7, is_secret=False))
    assert alarms(detectors.pattern(histogram(drawn, 4), probabilities(1.0, 4)))


def test_zeros_without_noise_are_noticed(monkeypatch):
    none = np.empty(0, np.int64)
    monkeypatch.setattr(mechanism, "_false_cells", lambda *_: (none, none))
    counts = released_alone(NoiseSource.research(4))
    assert alarms(detectors.pattern(empty_cells(counts), law_of_empty_cells(1.0, counts.threshold)))


def odds(source: NoiseSource, scale: float, trials: int = 100_000) -> tuple[int, int]:
    """How often a cell with one triple, and one without, is released with at least 1: the best guess of who has it."""
    return (
        int(np.count_nonzero(1 + two_sided(trials, scale, source) >= 1)),
        int(np.count_nonzero(two_sided(trials, scale, source) >= 1)),
    )


def test_an_audit_of_one_cell_stays_below_the_price_and_finds_counts_with_half_the_noise():
    """One cell is a randomised response: accusing at 1 is right exp(1 / scale) times as often as wrong."""
    right = math.exp(1.0) / (1 + math.exp(1.0))
    for source, is_wrong in ((NoiseSource.research(3), False), (HalfTheScale(3, is_secret=False), True)):
        hits, misses = odds(source, scale=1.0)
        assert alarms(detectors.share(hits, 100_000, right)) is is_wrong
        assert alarms(detectors.share(misses, 100_000, 1 - right)) is is_wrong
        measured = math.log((hits / 100_000) / (misses / 100_000))
        assert (measured > 1.05 / 1.0) is is_wrong


def test_the_threshold_keeps_the_table_small_and_follows_from_public_numbers():
    for size in (10**4, 10**7, 10**10):
        for scale in (0.2, 1.0, 8.0):
            fall, threshold = math.exp(-1 / scale), threshold_for(size, scale)
            assert threshold >= 1
            assert size * fall**threshold / (1 + fall) <= mechanism.MOST_FALSE * (1 + 1e-9)


@pytest.mark.parametrize("cells", [[[1, 1]], [[1, 2, 3]], [[0, 20]], [[-1, 3]]])
def test_what_would_change_more_than_two_cells_is_refused(cells):
    with pytest.raises(PrivacyError, match="cells"):
        NoisyCounts.release(np.array(cells), 20, 1.0, NoiseSource.research(1))


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_counts_cost_two_randomised_responses(scale):
    """In closed form: both right with chance p * p, a loss of 2 / scale; one right, none."""
    right, loss = 1 / (1 + math.exp(-1 / scale)), 2 / scale
    for epsilon in (0.25 * loss, 0.9 * loss):
        delta = right**2 - math.exp(epsilon) * (1 - right) ** 2
        assert PLDAccountant().epsilon([Charge(Geometric(scale))], delta) == pytest.approx(epsilon, rel=2e-3)
    assert PLDAccountant().epsilon([Charge(Geometric(scale))], 1e-12) == pytest.approx(loss, rel=2e-3)
    assert RDPAccountant().epsilon([Charge(Geometric(scale))], 1e-5) >= 0.98 * PLDAccountant().epsilon(
        [Charge(Geometric(scale))], 1e-5
    )


def test_the_divergence_is_that_of_geometric_noise():
    places, fall = np.arange(-100, 101), math.exp(-0.7)
    one, other = fall ** np.abs(places), fall ** np.abs(places - 1.0)
    for order in (1.5, 2.0, 8.0):
        moment = float((one**order * other ** (1 - order)).sum() / one.sum())
        assert response_divergence(0.7, order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-9)


def test_counts_and_steps_compose_as_the_library_says():
    charges = [Charge(Geometric(0.5)), Charge(Geometric(2.0)), Charge(SampledGaussian(0.2, 4.0), 200)]
    interval = 1e-4
    library = privacy_loss_distribution.from_gaussian_mechanism(
        4.0, sampling_prob=0.2, value_discretization_interval=interval
    ).self_compose(200)
    for scale in (0.5, 2.0):
        cell = privacy_loss_distribution.from_discrete_laplace_mechanism(
            1 / scale, value_discretization_interval=interval
        )
        library = library.compose(cell.self_compose(2))
    assert PLDAccountant().epsilon(charges, 1e-5) == pytest.approx(library.get_epsilon_for_delta(1e-5), rel=1e-3)
    for alone in charges:
        assert PLDAccountant().epsilon(charges, 1e-5) > PLDAccountant().epsilon([alone], 1e-5)


def test_an_integer_scale_costs_as_much_as_its_float_and_more_noise_finds_room():
    assert Geometric(2) == Geometric(2.0)
    assert Charge.of_record(Charge(Geometric(2)).record()) == Charge(Geometric(2.0))
    assert covers([Charge(Geometric(1))], [Charge(Geometric(2))])
    assert not covers([Charge(Geometric(1))], [Charge(Geometric(0.5))])
