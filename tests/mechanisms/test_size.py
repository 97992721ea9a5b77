"""A noisy size: what one triple changes, the law of the noise, what it costs, and bugs that must be noticed.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.pld import PLDAccountant
from fedkge.accounting.promises import covers
from fedkge.accounting.published import PublishedAccountant
from fedkge.accounting.rdp import RDPAccountant
from fedkge.base.errors import PrivacyError
from fedkge.defences import parse
from fedkge.defences.advance import exact_size, public_size
from fedkge.graph import Graph
from fedkge.mechanisms import size as mechanism
from fedkge.mechanisms.events import Charge, Geometric, PublishedGaussian, Size
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.size import SIZE_EPSILON, noisy_size, size_event
from tests.mechanisms.test_counts import histogram, probabilities
from tests.statistical import detectors
from tests.statistical.detectors import alarms

DRAWS, SCALE, FURTHEST = 20_000, 4.0, 16
TRIPLES = 1_537
names = st.sampled_from("abcd")


def released(draws: int = DRAWS, scale: float = SCALE) -> np.ndarray:
    source = NoiseSource.research(11)
    return np.array([noisy_size(TRIPLES, Size(scale), source) for _ in range(draws)])


def judge(sizes: np.ndarray, scale: float = SCALE) -> float:
    return detectors.pattern(histogram(sizes - TRIPLES, FURTHEST), probabilities(scale, FURTHEST))


@given(triples=st.sets(st.tuples(names, names, names), min_size=2))
def test_one_triple_changes_the_size_by_one_also_where_a_file_repeats_it(triples):
    rows = sorted(triples)
    whole, less = (Graph.from_names("g", train=some) for some in (rows, rows[1:]))
    assert exact_size(whole) - exact_size(less) == 1
    twice = Graph("g", whole.entities, whole.relations, np.concatenate((whole.train, whole.train[:1])))
    assert exact_size(twice) == exact_size(whole)


def test_the_noise_is_two_sided_geometric_of_the_scale_that_is_charged():
    assert not alarms(judge(released()))
    assert released().std() == pytest.approx(Size(SCALE).deviation, rel=0.03)


def test_a_size_is_at_least_one():
    source = NoiseSource.research(2)
    sizes = [noisy_size(0, Size(20.0), source) for _ in range(200)]
    assert min(sizes) == 1
    assert sum(size == 1 for size in sizes) > 80
    with pytest.raises(PrivacyError, match="expected a number of triples >= 0, got -1"):
        noisy_size(-1, Size(20.0), source)


@pytest.mark.parametrize("bug", ["half the noise", "the exact size", "one side only"])
def test_a_bug_is_noticed(monkeypatch, bug):
    true = mechanism.two_sided
    wrong = {
        "half the noise": lambda size, scale, source: true(size, scale / 2, source),
        "the exact size": lambda size, *_: np.zeros(size, np.int64),
        "one side only": lambda *arguments: np.abs(true(*arguments)),
    }
    assert not alarms(judge(released()))
    monkeypatch.setattr(mechanism, "two_sided", wrong[bug])
    assert alarms(judge(released()))


def test_what_a_client_releases_has_that_law_too():
    """The whole way from the options to the number: one release for each of many research seeds."""
    graph = Graph.from_names("g", train=[(f"e{i}", "r", f"e{i + 1}") for i in range(TRIPLES)])
    sizes = []
    for seed in range(1_500):
        options = parse({"defence": "recommended", "epsilon": 8, "noise_seed": seed})
        sizes.append(public_size(options, "client-0", graph, Ledger.in_memory(), 0))
    scale, furthest = 1 / SIZE_EPSILON, 80
    found = histogram(np.array(sizes) - TRIPLES, furthest)
    assert not alarms(detectors.pattern(found, probabilities(scale, furthest)))
    assert alarms(detectors.pattern(found, probabilities(scale / 2, furthest))), "half the noise would be noticed"


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_a_size_costs_its_epsilon_on_top_of_what_follows(scale):
    """Noise is chosen after the size was seen: see tests/accounting/test_beforehand.py."""
    size, counts = [Charge(Size(scale))], [Charge(Geometric(scale))]
    for accountant in (PLDAccountant(), RDPAccountant()):
        assert accountant.epsilon(size, 1e-6) == pytest.approx(1 / scale)
        alone = accountant.epsilon(counts, 1e-6)
        assert accountant.epsilon([*size, *counts], 1e-6) == pytest.approx(alone + 1 / scale)


def test_the_probabilities_of_neighbours_differ_by_no_more_than_the_price():
    """Every noisy number, by the law itself: with a triple more, at most e^epsilon likelier."""
    scale = 20.0
    law = [math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-300, 301)]
    for one, other in zip(law[1:], law[:-1], strict=True):
        assert abs(math.log(one / other)) <= 1 / scale + 1e-12


def test_the_papers_formulas_add_a_size_as_pure_epsilon():
    step = Charge(PublishedGaussian(0.001, 2.0), 100)
    accountant = PublishedAccountant()
    with_size = accountant.epsilon([step, Charge(Size(20.0))], 1e-5)
    assert with_size == pytest.approx(accountant.epsilon([step], 1e-5) + 0.05)
    assert accountant.epsilon([Charge(Size(20.0))], 1e-5) == pytest.approx(0.05)


def test_a_small_budget_pays_a_small_part_for_the_size():
    for budget, price in ((None, 0.05), (100.0, 0.05), (2.5, 0.05), (1.0, 0.02), (0.1, 0.002)):
        assert 1 / size_event(budget).scale == pytest.approx(price)


def test_a_promise_of_a_size_covers_one_with_more_noise_only():
    assert covers([Charge(Size(20))], [Charge(Size(21))])
    assert not covers([Charge(Size(20))], [Charge(Size(19))])
    assert not covers([Charge(Geometric(1))], [Charge(Size(20))])
    assert Charge.of_record(Charge(Size(20)).record()) == Charge(Size(20.0))
