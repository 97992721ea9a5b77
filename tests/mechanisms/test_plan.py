"""What surrounds a private step: its plan, public negatives, schedules, and noise that is drawn late.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

import numpy as np
import pytest

from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.mechanisms import (
    Adafest,
    Clip,
    LazyNoise,
    NoiseSource,
    PoissonSampling,
    Ptr,
    PublicNegatives,
    StepPlan,
)
from fedkge.mechanisms.events import Charge, SampledGaussian, SampledPair
from tests.statistical import detectors
from tests.statistical.detectors import alarms


def test_a_plan_gives_rate_sampling_noise_and_price() -> None:
    selection, gradient = Adafest.split(1.0, 0.1)
    plan = StepPlan(4096, 90_000, Clip(0.5), gradient, Adafest(selection, 3.0))
    assert plan.rate == 4096 / 90_000
    assert plan.sampling == PoissonSampling(plan.rate)
    assert plan.deviation == gradient * 0.5
    assert plan.charge(7) == Charge(SampledPair(plan.rate, selection, gradient), 7)


def test_a_batch_above_the_public_size_takes_everything() -> None:
    assert StepPlan(100, 10, Clip(1.0), 1.0).event() == SampledGaussian(1.0, 1.0)


def test_a_selection_for_another_clip_or_batch_is_refused() -> None:
    StepPlan(64, 1000, Clip(1.2, 0.8), 1.0, Ptr(Clip(1.2, 0.8), 64))
    for clip, batch in ((Clip(1.2, 0.4), 64), (Clip(1.2, 0.8), 32)):
        with pytest.raises(PrivacyError, match="clip and batch"):
            StepPlan(64, 1000, Clip(1.2, 0.8), 1.0, Ptr(clip, batch))


@pytest.mark.parametrize(("batch", "triples", "multiplier"), [(0, 10, 1.0), (10, 0, 1.0), (1, 1, 0.0)])
def test_impossible_plans_are_refused(batch: int, triples: int, multiplier: float) -> None:
    with pytest.raises(PrivacyError):
        StepPlan(batch, triples, Clip(1.0), multiplier)


def test_public_negatives_are_uniform() -> None:
    drawn = PublicNegatives(4, 3).draw(20_000, np.random.default_rng(1))
    assert drawn.dtype == np.int32
    cells = drawn[:, 0] * 12 + drawn[:, 1] * 4 + drawn[:, 2]
    assert not alarms(detectors.pattern(np.bincount(cells, minlength=48), np.full(48, 1 / 48)))


def test_public_pairs_keep_their_relation_on_either_side() -> None:
    graph = np.array([[0, 0, 1], [0, 0, 2], [3, 1, 0]], np.int32)
    heads = PublicNegatives(5, 2, pairs=graph[:, :2]).draw(20_000, NoiseSource.research(1))
    cells = heads[:, 0] * 10 + heads[:, 1] * 5 + heads[:, 2]
    law = np.zeros(50)
    law[0:5], law[35:40] = 2 / 15, 1 / 15
    assert not alarms(detectors.pattern(np.bincount(cells, minlength=50), law))
    tails = PublicNegatives(5, 2, tail_pairs=graph[:, [2, 1]]).draw(1000, NoiseSource.research(1))
    assert {(1, 0), (2, 0), (0, 1)} == set(zip(tails[:, 2].tolist(), tails[:, 1].tolist(), strict=True))
    both = PublicNegatives.of_graph(graph, 5, 2).draw(20_000, NoiseSource.research(2))
    pairs = {(0, 0), (3, 1)}
    kept = sum(pair in pairs for pair in zip(both[:, 0].tolist(), both[:, 1].tolist(), strict=True))
    # Half of the draws keep a head; of the others, a uniform head makes (0, 0) or (3, 1) by one in five.
    assert not alarms(detectors.share(kept, 20_000, 0.5 + 0.5 / 5))


@pytest.mark.parametrize("pairs", [np.array([[5, 0]]), np.array([[0, 2]]), np.array([[-1, 0]]), np.empty((0, 2), int)])
def test_pairs_of_unknown_names_are_refused(pairs: np.ndarray) -> None:
    with pytest.raises(ConfigurationError):
        PublicNegatives(5, 2, pairs=pairs)


def test_late_noise_has_the_law_of_noise_in_every_step() -> None:
    """Rows settled often, once, or in the step itself: all end with the variance of all steps, uncorrelated."""
    rows, width, steps, deviation = 30, 2_000, 9, 0.3
    lazy, source, table = LazyNoise(rows), NoiseSource.research(9), np.zeros((30, 2_000))
    often, in_step = np.arange(0, 10), np.arange(10, 20)
    for step in range(steps):
        lazy.settle(often[: step + 1], table, deviation, source)
        table[in_step] += source.gaussian((10, width), deviation)
        lazy.owe(rows_noised_now=in_step)
    lazy.settle_all(table, deviation, source)
    assert not lazy.owed.any()
    total = deviation * np.sqrt(steps)
    for group in (table[:10], table[10:20], table[20:]):
        assert not alarms(detectors.variance(group, total))
        assert not alarms(detectors.normality(group, total))
        assert not alarms(detectors.correlation(group[1:].ravel(), group[:-1].ravel(), total))
    before = table.copy()
    lazy.settle_all(table, deviation, source)
    np.testing.assert_array_equal(before, table)


def test_late_noise_of_another_deviation_waits_until_all_is_settled() -> None:
    lazy, source, table = LazyNoise(2), NoiseSource.research(0), np.zeros((2, 3), np.float32)
    lazy.owe()
    lazy.settle(np.array([0, 0]), table, 1.0, source)
    with pytest.raises(PrivacyError, match="settle all"):
        lazy.settle(np.array([1]), table, 2.0, source)
    lazy.settle_all(table, 1.0, source)
    lazy.owe()
    lazy.settle(np.array([1]), table, 2.0, source)
    assert lazy.owed.tolist() == [1, 0]


@pytest.mark.parametrize("failure", [1.0, 5.0])
def test_a_test_that_always_fails_is_no_event(failure: float) -> None:
    for kind, more in (("sampled-test", {}), ("published-test", {"passed": 0.5})):
        values = {"rate": 0.1, "gap": 1.0, "test": 1.0, "gradient": 1.0, "failure": failure, **more}
        with pytest.raises(ConfigurationError, match="failure below 1"):
            Charge.of_record({"event": kind, **values, "steps": 1})
