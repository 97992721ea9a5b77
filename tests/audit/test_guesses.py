"""Guesses: what depends on the scores, what must not depend on the coins, and the price of looking often."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedkge.audit import audit, epsilon_lower_bound
from fedkge.audit.guesses import corrected, default_guesses, right_guesses
from fedkge.base.errors import ConfigurationError, DataError, NumericalError

COINS = np.random.default_rng(1).integers(0, 2, 1000).astype(bool)


def seeded() -> np.random.Generator:
    return np.random.default_rng(3)


def test_the_highest_are_guessed_in_and_the_lowest_out() -> None:
    bits = [True, False, False, True, True, False]
    assert right_guesses([6, 5, 4, 3, 2, 1], bits, 2, seeded()) == 2
    assert right_guesses([6, 5, 4, 3, 2, 1], bits, 4, seeded()) == 2
    assert right_guesses([6, 5, 4, 3, 2, 1], bits, 6, seeded()) == 2


def test_ties_are_not_broken_by_the_order_of_the_canaries() -> None:
    """Members first: a sort that keeps the order of equal scores would guess them all alike."""
    bits = np.arange(1000) < 500
    for order in (1, -1):
        assert 200 < right_guesses(np.zeros(1000), bits[::order], 500, seeded()) < 300


def test_only_guessed_canaries_matter() -> None:
    scores = np.where(COINS, 1.0, -1.0) * np.linspace(1, 2, 1000)
    wrong = np.abs(scores) < 1.2
    bits = np.where(wrong, ~COINS, COINS)
    assert right_guesses(scores, bits, 400, seeded()) == 400


def test_without_an_opinion_a_canary_is_guessed_last() -> None:
    scores = np.where(COINS, 1.0, -1.0)
    scores[100:] = np.nan
    few = min(int(COINS[:100].sum()), int((~COINS[:100]).sum()))
    assert right_guesses(scores, COINS, 2 * few, seeded()) == 2 * few
    assert 400 < right_guesses(scores, COINS, 1000, seeded()) < 650
    assert 400 < right_guesses(np.full(1000, np.nan), COINS, 1000, seeded()) < 600


def test_every_look_is_paid_for() -> None:
    scores = {f"attack {number}": np.where(COINS, 1.0, 0.0) + number for number in range(5)}
    once, often = audit({"one": scores["attack 0"]}, COINS, guesses=[200]), audit(scores, COINS, guesses=[200, 400])
    assert (once.comparisons, often.comparisons) == (1, 10)
    assert often.findings[0].right == once.findings[0].right == 200
    assert often.findings[0].bound < once.bound
    assert often.findings[0].bound == epsilon_lower_bound(200, 200, 1000, 1e-5, 1 - 0.05 / 10)
    assert often.bound == often.ceiling == often.findings[1].bound
    assert corrected(0.95, 1) == pytest.approx(0.95)


def test_the_same_number_twice_is_one_look() -> None:
    assert audit({"one": COINS}, COINS, guesses=[100, 100]).comparisons == 1


def test_the_record_is_json_and_repeats() -> None:
    scores = {"loud": COINS + seeded().normal(0, 0.5, 1000), "silent": np.zeros(1000)}
    first, second = (audit(scores, COINS).record() for _ in range(2))
    assert first == second == json.loads(json.dumps(first))
    assert set(first) >= {"bound", "ceiling", "gaussian", "delta", "confidence", "comparisons", "findings"}
    assert first["gaussian"]["holds"] == "if the mechanism is Gaussian-like"
    assert [row["attack"] for row in first["findings"]] == ["loud", "loud", "silent", "silent"]


def test_pure_privacy_has_no_gaussian_form() -> None:
    found = audit({"one": COINS}, COINS, delta=0.0)
    assert found.gaussian_bound is None
    assert found.record()["gaussian"]["bound"] is None
    assert found.bound > 0


def test_numbers_of_guesses_follow_from_the_canaries_alone() -> None:
    assert default_guesses(10_000) == (1000, 5000)
    for canaries in range(2, 300):
        assert all(2 <= number <= canaries and number % 2 == 0 for number in default_guesses(canaries))


@pytest.mark.parametrize("guesses", [0, 1, 3, 1002])
def test_impossible_numbers_of_guesses(guesses: int) -> None:
    with pytest.raises(ConfigurationError, match=f"expected an even number of guesses.*1000 canaries, got {guesses}"):
        audit({"one": COINS}, COINS, guesses=[guesses])


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match="at least one attack"):
        audit({}, COINS)
    with pytest.raises(DataError, match="one score for each of the 1000 canaries"):
        audit({"short": COINS[:-1]}, COINS)
    with pytest.raises(DataError, match="expected one bit"):
        audit({"one": COINS}, np.arange(1000))
    with pytest.raises(NumericalError, match="1 of 1000 scores are infinite"):
        audit({"one": np.where(np.arange(1000) == 4, np.inf, 0.0)}, COINS)
