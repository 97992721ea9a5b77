"""Names by a threshold: what one triple changes, the chances of names, what it costs, and bugs that must be noticed.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.accounting.failures import failure_mass
from fedkge.accounting.pld import PLDAccountant
from fedkge.accounting.promises import covers
from fedkge.accounting.rdp import RDPAccountant
from fedkge.base.errors import PrivacyError
from fedkge.graph.restricted import mentions
from fedkge.mechanisms import names as mechanism
from fedkge.mechanisms.events import Charge, Geometric, Names
from fedkge.mechanisms.names import name_event, released_names
from fedkge.mechanisms.noise import NoiseSource
from tests.statistical import detectors
from tests.statistical.detectors import alarms

ENTITIES, MANY = 6, 40_000
EVENT = Names(scale=2.0, threshold=5.0)
triples_of_a_graph = st.sets(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, 2), st.integers(0, ENTITIES - 1)), min_size=1
)


def passing(count: int, event: Names = EVENT) -> float:
    """The chance that a name with so many mentions is released, by the law of the noise."""
    fall, above = math.exp(-1 / event.scale), event.threshold - count
    return fall**above / (1 + fall) if above > 0 else 1 - fall ** (1 - above) / (1 + fall)


def share(count: int) -> float:
    found = released_names(np.full(MANY, count), EVENT, NoiseSource.research(5))
    return detectors.share(int(found.sum()), MANY, passing(count))


@given(triples=triples_of_a_graph)
def test_one_triple_changes_its_two_names_by_one(triples):
    rows = np.array(sorted(triples), np.int32)
    change = mentions(rows, ENTITIES) - mentions(rows[1:], ENTITIES)
    assert set(np.flatnonzero(change)) == {int(rows[0, 0]), int(rows[0, 2])}
    assert change.max() == 1
    np.testing.assert_array_equal(mentions(np.concatenate((rows, rows)), ENTITIES), mentions(rows, ENTITIES))


@pytest.mark.parametrize("count", [1, 4, 5, 6, 9])
def test_names_pass_as_often_as_the_law_says(count):
    assert not alarms(share(count))


def test_a_name_that_no_triple_mentions_is_never_released():
    assert not released_names(np.zeros(MANY, np.int64), Names(50.0, 1.0), NoiseSource.research(5)).any()


def test_noise_is_drawn_for_mentioned_names_alone():
    """So names without triples, which a neighbour may not have, do not even move the coins."""
    counts = np.array([3, 9, 5, 4])
    padded = np.array([0, 3, 0, 9, 5, 0, 4])
    few = released_names(counts, EVENT, NoiseSource.research(8))
    many = released_names(padded, EVENT, NoiseSource.research(8))
    np.testing.assert_array_equal(many[padded > 0], few)


@pytest.mark.parametrize("bug", ["half the noise", "no noise", "a threshold one too low"])
def test_a_bug_is_noticed(monkeypatch, bug):
    true = mechanism.two_sided
    wrong = {
        "half the noise": lambda size, scale, source: true(size, scale / 2, source),
        "no noise": lambda size, *_: np.zeros(size, np.int64),
        "a threshold one too low": lambda *arguments: true(*arguments) + 1,
    }
    monkeypatch.setattr(mechanism, "two_sided", wrong[bug])
    assert alarms(share(1))


def test_the_exposure_is_the_chance_of_both_sole_names():
    assert EVENT.exposure == pytest.approx(2 * passing(1))
    assert failure_mass([Charge(EVENT)]) == EVENT.exposure


@given(epsilon=st.floats(0.01, 20), delta=st.floats(1e-9, 1e-3))
def test_the_threshold_is_the_least_that_half_of_delta_allows(epsilon, delta):
    event = name_event(epsilon, delta)
    assert 2 / event.scale == pytest.approx(epsilon)
    assert event.exposure <= delta / 2
    if event.threshold > 1:
        assert Names(event.scale, event.threshold - 1).exposure > delta / 2


def test_neighbours_differ_by_no_more_than_the_price():
    """By the law itself, for every number of mentions: pass or not, with one mention more."""
    event = name_event(1.0, 1e-5)
    for count in range(1, 80):
        less, more = passing(count, event), passing(count + 1, event)
        for one, other in ((less, more), (1 - less, 1 - more)):
            if one > 1e-7:  # below, 1 - p has too few digits
                assert abs(math.log(one / other)) <= 1 / event.scale + 1e-7
    assert 2 * passing(1, event) <= 5e-6


def test_names_cost_two_counts_on_top_of_what_follows_and_a_part_of_delta():
    event = name_event(2.0, 1e-5)
    for accountant in (PLDAccountant(), RDPAccountant()):
        assert accountant.epsilon([Charge(event)], 1e-5) == pytest.approx(2.0)
        rest = Charge(Geometric(1.0))
        alone = accountant.epsilon([rest], 1e-5 - event.exposure)
        assert accountant.epsilon([Charge(event), rest], 1e-5) == pytest.approx(2.0 + alone)
        assert accountant.epsilon([Charge(event)], event.exposure) == math.inf
    assert covers([Charge(event)], [Charge(Names(event.scale, event.threshold + 1))])
    assert not covers([Charge(event)], [Charge(Names(event.scale, event.threshold - 1))])
    wider = Names(2 * event.scale, event.threshold)
    assert wider.exposure > event.exposure
    assert not covers([Charge(event)], [Charge(wider)]), "less epsilon, and more of delta"
    assert Charge.of_record(Charge(event).record()) == Charge(event)


def test_counts_must_be_counts():
    with pytest.raises(PrivacyError, match="expected one number of triples >= 0 per name"):
        released_names(np.array([1, -1]), EVENT, NoiseSource.research(1))
