"""Randomised responses: what one triple changes, how often an answer lies, what that costs, and planted bugs.

False-alarm rate of each statistical check: see `tests/statistical/detectors.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.accounting.pld import PLDAccountant
from fedkge.accounting.promises import covers
from fedkge.accounting.rdp import RDPAccountant
from fedkge.base.errors import PrivacyError
from fedkge.mechanisms import responses
from fedkge.mechanisms.events import Charge, Geometric, Responses
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.responses import flip_chance, respond
from tests.statistical import detectors
from tests.statistical.detectors import alarms

CELLS = 100_000


@given(held=st.sets(st.integers(0, 49), min_size=1), seed=st.integers(0, 1000))
def test_one_triple_changes_one_answer(held, seed):
    """With the same coins, the answers with a triple and without it differ in its own cell and nowhere else."""
    asked, triple = np.arange(50), min(held)
    answers = [
        set(respond(asked, np.array(sorted(some), np.int64), 1.0, NoiseSource.research(seed)).tolist())
        for some in (held, held - {triple})
    ]
    assert answers[0] ^ answers[1] == {triple}


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_both_answers_lie_as_often_as_they_must(epsilon):
    held = np.arange(0, 2 * CELLS, 2)
    yes = respond(np.arange(2 * CELLS), held, epsilon, NoiseSource.research(5))
    right = np.count_nonzero(yes % 2 == 0)
    assert not alarms(detectors.share(right, CELLS, 1 - flip_chance(epsilon)))
    assert not alarms(detectors.share(len(yes) - right, CELLS, flip_chance(epsilon)))


def measured(epsilon: float) -> tuple[int, int]:
    """How often a triple that is there, and one that is not, is answered with yes."""
    asked = np.arange(CELLS)
    return (
        len(respond(asked, asked, epsilon, NoiseSource.research(8))),
        len(respond(asked, np.empty(0, np.int64), epsilon, NoiseSource.research(9))),
    )


@pytest.mark.parametrize("is_wrong", [False, True])
def test_an_audit_stays_below_the_price_and_finds_answers_that_lie_half_as_often(is_wrong, monkeypatch):
    if is_wrong:
        monkeypatch.setattr(responses, "flip_chance", lambda epsilon: flip_chance(epsilon) / 2)
    true, false = measured(2.0)
    assert (math.log(true / false) > 2.1) is is_wrong
    assert alarms(detectors.share(false, CELLS, flip_chance(2.0))) is is_wrong


@pytest.mark.parametrize("is_wrong", [False, True])
def test_lies_about_held_triples_alone_are_noticed(is_wrong, monkeypatch):
    """A planted bug: what is not held is always denied, so that every yes is proof."""
    if is_wrong:
        honest = responses.respond
        monkeypatch.setattr(responses, "respond", lambda *values: np.intersect1d(honest(*values), values[1]))
    yes = responses.respond(np.arange(CELLS), np.arange(10), 2.0, NoiseSource.research(3))
    false = np.count_nonzero(yes >= 10)
    assert alarms(detectors.share(false, CELLS - 10, flip_chance(2.0))) is is_wrong


def test_no_cell_is_asked_twice():
    for asked in ([3, 3], [4, 2]):
        with pytest.raises(PrivacyError, match="distinct cells in ascending order"):
            respond(np.array(asked), np.array([3]), 1.0, NoiseSource.research(1))


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
def test_answers_cost_their_epsilon(epsilon):
    charges = [Charge(Responses(epsilon))]
    right = 1 - flip_chance(epsilon)
    exact = epsilon + math.log1p(-1e-5 / right)  # delta = right * (1 - exp(e - epsilon))
    assert exact <= PLDAccountant().epsilon(charges, 1e-5) <= epsilon + 2e-3
    assert PLDAccountant().epsilon(charges, 1e-5) <= RDPAccountant().epsilon(charges, 1e-5) * 1.02


def test_counts_and_answers_add_up():
    charges = [Charge(Geometric(2 / 3)), Charge(Responses(5.0))]
    assert PLDAccountant().epsilon(charges, 1e-5) == pytest.approx(8.0, abs=2e-3)


def test_a_dearer_answer_is_not_covered():
    assert covers([Charge(Responses(5))], [Charge(Responses(4))])
    assert not covers([Charge(Responses(4))], [Charge(Responses(5))])
    assert Charge.of_record(Charge(Responses(5)).record()) == Charge(Responses(5.0))
