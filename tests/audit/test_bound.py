"""Bounds from counts: against sums written out, at their ends, and what they refuse."""

from __future__ import annotations

from math import comb, exp

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fedkge.audit.bound import alpha_of, ceiling, epsilon_lower_bound, p_value
from fedkge.audit.gaussian_bound import gaussian_epsilon, gaussian_lower_bound, mu_lower_bound, refutes
from fedkge.base.errors import ConfigurationError


def written_out(epsilon: float, right: int, guesses: int, canaries: int, delta: float) -> float:
    """The definition, term by term."""
    chance = exp(epsilon) / (1 + exp(epsilon))

    def exactly(number: int) -> float:
        return comb(guesses, number) * chance**number * (1 - chance) ** (guesses - number)

    beyond = sum(exactly(number) for number in range(right, guesses + 1))
    below = [sum(exactly(number) for number in range(right - i, right)) / i for i in range(1, right + 1)]
    return min(1.0, beyond + 2 * canaries * delta * max(below, default=0.0))


@given(
    guesses=some.integers(1, 60),
    missed=some.integers(0, 60),
    unguessed=some.integers(0, 100),
    epsilon=some.floats(0, 8),
    delta=some.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
)
def test_p_value_is_the_definition(guesses: int, missed: int, unguessed: int, epsilon: float, delta: float) -> None:
    right, canaries = max(0, guesses - missed), guesses + unguessed
    expected = written_out(epsilon, right, guesses, canaries, delta)
    assert p_value(epsilon, right, guesses, canaries, delta) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-5])
@pytest.mark.parametrize(("right", "guesses", "canaries"), [(95, 100, 1000), (100, 100, 100), (620, 1000, 5000)])
def test_the_bound_is_where_p_reaches_alpha(right: int, guesses: int, canaries: int, delta: float) -> None:
    bound = epsilon_lower_bound(right, guesses, canaries, delta, confidence=0.99)
    assert p_value(bound, right, guesses, canaries, delta) < alpha_of(0.99)
    assert p_value(bound + 1e-6, right, guesses, canaries, delta) >= alpha_of(0.99)


def test_what_makes_a_bound_larger_and_smaller() -> None:
    bounds = [epsilon_lower_bound(right, 100, 1000) for right in range(101)]
    assert bounds == sorted(bounds)
    assert bounds[:58] == [0.0] * 58
    assert bounds[-1] == ceiling(100, 1000)
    assert epsilon_lower_bound(95, 100, 1000, delta=0.0) > epsilon_lower_bound(95, 100, 1000, delta=1e-4)
    assert epsilon_lower_bound(95, 100, 1000, confidence=0.9) > epsilon_lower_bound(95, 100, 1000, confidence=0.99)
    assert epsilon_lower_bound(95, 100, 100) > epsilon_lower_bound(95, 100, 10_000)


def test_pure_privacy_with_all_right_has_a_closed_form() -> None:
    # every guess right: chance^guesses = alpha
    chance = 0.05 ** (1 / 100)
    assert exp(epsilon_lower_bound(100, 100, 100, delta=0.0)) == pytest.approx(chance / (1 - chance), rel=1e-9)


def test_the_gaussian_form() -> None:
    mus = [mu_lower_bound(right, 100, 400) for right in range(101)]
    assert mus == sorted(mus)
    assert mus[0] == mus[50] == 0.0
    assert refutes(mus[-1], 100, 100, 400, 0.05)
    assert not refutes(mus[-1] + 1e-9, 100, 100, 400, 0.05)
    assert gaussian_lower_bound(50, 100, 400) == 0.0
    assert gaussian_epsilon(0.0) == gaussian_epsilon(1e-9) == 0.0


@pytest.mark.parametrize(
    ("counts", "options", "text"),
    [
        ((5, 4, 10), {}, "expected 0 <= right guesses <= guesses <= canaries"),
        ((2, 4, 3), {}, "got 2, 4 and 3"),
        ((0, 0, 3), {}, "at least one guess"),
        ((1, 2, 3), {"delta": -0.1}, "expected a delta of at least 0"),
        ((1, 2, 3), {"delta": 1.0}, "below 1"),
        ((1, 2, 3), {"confidence": 1.0}, "expected a confidence between 0 and 1"),
    ],
)
def test_refusals(counts: tuple[int, int, int], options: dict[str, float], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        epsilon_lower_bound(*counts, **options)


def test_the_gaussian_form_needs_a_delta() -> None:
    with pytest.raises(ConfigurationError, match="expected a delta between 0 and 1"):
        gaussian_epsilon(1.0, 0.0)
