"""Size and names decide about the noise that follows, so their costs add up plainly."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.filters import RenyiFilter
from fedkge.accounting.pld import PLDAccountant
from fedkge.mechanisms.events import Charge, Gaussian, Names, Responses, SampledGaussian, Size

DELTA = 0.05
SIZE = Size(1.0)


@pytest.mark.parametrize("name", ["pld", "rdp"])
def test_a_rest_that_is_chosen_after_the_size_was_seen_keeps_delta(name: str) -> None:
    """After one half of the sizes a mechanism whose delta falls steeply, after the other one whose delta hardly falls.

    Each keeps epsilon with the size by itself. With composed losses both together had 1.2 times delta.
    """
    accountant = make_accountant(name)
    slow = Charge(Gaussian(0.05))
    epsilon = accountant.epsilon([Charge(SIZE), slow], DELTA)

    def excess(answers: float) -> float:
        return accountant.epsilon([Charge(SIZE), Charge(Responses(answers))], DELTA) - epsilon

    answers = brentq(excess, epsilon - 3, epsilon + 3, xtol=1e-6)
    steep = Charge(Responses(answers))
    likelier = 1 / (1 + math.exp(-1 / SIZE.scale))
    delta_at = PLDAccountant().delta
    chosen = likelier * delta_at([steep], epsilon - 1) + (1 - likelier) * delta_at([slow], epsilon + 1)
    assert chosen <= DELTA * 1.001


def test_a_filter_leaves_room_for_what_went_before() -> None:
    step = Charge(SampledGaussian(0.05, 1), 5)
    before = (Charge(Size(2.0)), Charge(Names(scale=2.0, threshold=60)))
    planned = RenyiFilter(8, 1e-5, (*before, Charge(step.event, 500)))
    less = RenyiFilter(8 - 1.5, planned._delta, (Charge(step.event, 500),))
    admitted = [
        next(number for number in range(1, 200) if not kept.admits((*spent, Charge(step.event, 5 * number)), (step,)))
        for kept, spent in ((planned, before), (less, ()))
    ]
    assert admitted[0] == admitted[1]
