"""What a guess about one triple is worth: against brute force over all coins, and the numbers that we print."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fedkge.accounting.posterior import chance_right, guess_worth, sureness
from fedkge.base.numbers import percent
from fedkge.defences import with_defence
from fedkge.mechanisms.events import Charge, Gaussian, Geometric, PublishedGaussian, Responses, SampledTest, Size
from fedkge.mechanisms.metrics import cost_of
from fedkge.mechanisms.names import name_event
from fedkge.report.guess_words import guess_words

DELTA = 1e-5


def copy_charges(epsilon: float) -> list[Charge]:
    """A copy with the shares that `--epsilon` chooses."""
    options = with_defence({"epsilon": epsilon})
    counts, answers = options["count-share"] * epsilon, options["copy-share"] * epsilon
    return [Charge(Geometric(2 / counts)), Charge(Responses(answers))]


def brute_force(odds: list[float]) -> float:
    """The chance that the best guess is right: each release is a vote that is wrong with 1 / (1 + e^odds)."""
    right = 0.0
    for votes in product((True, False), repeat=len(odds)):
        chances = [
            math.prod(
                sureness(log) if vote is held else 1 - sureness(log) for vote, log in zip(votes, odds, strict=True)
            )
            for held in (True, False)
        ]
        right += max(chances) / 2
    return right


@settings(deadline=None, max_examples=25)
@given(counts=st.floats(0.2, 8.0), answers=st.floats(0.05, 8.0))
def test_counts_and_answers_together_are_worth_what_all_their_coins_say(counts, answers):
    found = guess_worth([Charge(Geometric(2 / counts)), Charge(Responses(answers))], counts + answers, DELTA)
    assert found is not None
    assert found.typical == pytest.approx(brute_force([counts / 2, counts / 2, answers]), abs=3e-4)
    assert found.unasked == pytest.approx(brute_force([counts / 2, counts / 2]), abs=3e-4)
    assert found.worst == pytest.approx(sureness(counts + answers))
    assert found.delta == 0, "without any delta, no outcome is excepted"
    assert 0.5 <= found.unasked <= found.typical + 1e-9
    assert found.typical <= found.worst + 1e-9


@pytest.mark.parametrize(("epsilon", "typical", "agree", "answer"), [(2.0, 0.72, 0.86, 0.52), (4.0, 0.88, 0.98, 0.55)])
def test_a_small_epsilon_does_not_let_anybody_deny_a_triple(epsilon, typical, agree, answer):
    """The answers alone (52 %, 55 %) were once printed as if the counts, which hold 95 % of epsilon, told nothing."""
    found = guess_worth(copy_charges(epsilon), epsilon, DELTA)
    assert found is not None
    assert found.typical == pytest.approx(typical, abs=0.015)
    assert found.counts_agree == pytest.approx(agree, abs=0.015)
    assert found.answer == pytest.approx(answer, abs=0.006)
    assert percent(found.typical) in guess_words(found)


def test_answers_jump_where_their_share_does():
    below, above = (guess_worth(copy_charges(epsilon), epsilon, DELTA) for epsilon in (4.9, 5.0))
    assert below is not None
    assert above is not None
    assert [percent(each.answer or 0) for each in (below, above)] == ["56.1 %", "97.7 %"]
    assert below.typical < above.typical
    assert (below.unasked or 0) > (above.unasked or 0), "about what is not asked, the counts tell less than before"


def test_noisy_steps_have_the_total_variation_of_their_noise():
    found = guess_worth([Charge(Gaussian(2.0))], 3.0, DELTA)
    assert found is not None
    assert found.typical == pytest.approx(norm.cdf(1 / 4), abs=1e-3)
    assert (found.unasked, found.counts_agree, found.answer) == (None, None, None)
    assert "at most" in guess_words(found)
    assert "Up to delta (1e-05), no outcome" in guess_words(found)
    assert found.worst == sureness(3.0)


def test_what_a_test_may_fail_with_counts():
    charge = Charge(SampledTest(0.01, 1.0, 1.0, 1.0, 1e-3), 10)
    without = Charge(SampledTest(0.01, 1.0, 1.0, 1.0, 1e-12), 10)
    assert chance_right([charge]) > chance_right([without])


def test_noise_that_followed_results_has_the_bound_of_epsilon_and_delta():
    found = guess_worth([Charge(Gaussian(2.0))], 3.0, 0.01, adaptive=True)
    assert found is not None
    odds = math.exp(3.0)
    assert found.typical == pytest.approx((odds + 0.01) / (odds + 1))


@pytest.mark.parametrize("charges", [[Charge(PublishedGaussian(0.1, 1.0))], copy_charges(4.0)])
def test_without_a_guarantee_there_is_no_number(charges):
    epsilon = math.inf if isinstance(charges[0].event, Geometric) else 3.0
    assert guess_worth(charges, epsilon, DELTA) is None


def test_a_size_is_pure_epsilon_and_names_are_not() -> None:
    copy = [Charge(Geometric(1.0)), Charge(Responses(5.95))]
    with_size = guess_worth([*copy, Charge(Size(20.0))], epsilon=8.0, delta=1e-5)
    assert with_size is not None
    assert with_size.delta == 0
    assert with_size.worst == pytest.approx(sureness(8.0))
    named = guess_worth([*copy, Charge(name_event(2.0, 1e-5))], epsilon=8.0, delta=1e-5)
    assert named is not None
    assert named.delta == 1e-5
    assert named.typical > guess_worth(copy, epsilon=8.0, delta=1e-5).typical  # type: ignore[union-attr]


def test_a_paid_figure_is_no_answer_about_a_triple() -> None:
    """It was left out of what is known of a triple that the copy did not ask about, and made steps look like a copy."""
    figure = Charge(cost_of(2.0))
    found = guess_worth([Charge(Geometric(2.0)), Charge(Responses(4.0)), figure], epsilon=7.0, delta=DELTA)
    assert found is not None
    assert found.unasked == pytest.approx(brute_force([0.5, 0.5, 2.0]), abs=3e-4)
    assert found.typical == pytest.approx(brute_force([0.5, 0.5, 4.0, 2.0]), abs=3e-4)
    assert found.answer == pytest.approx(sureness(4.0))
    assert found.worst == pytest.approx(sureness(7.0))
    steps = guess_worth([Charge(Gaussian(1.0)), figure], epsilon=6.0, delta=DELTA)
    assert steps is not None
    assert steps.answer is None
    assert "copy" not in guess_words(steps)
