"""The audit must not claim more than is true: mechanisms whose epsilon is known, and one that leaks nothing.

Rates are exact where the distribution of right guesses is known (then nothing here is random). Simulated ones are
seeded, and may exceed 5 % by as much as a correct audit would with a chance of 1 in 10,000 (`allowed`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fedkge.audit.bound import ceiling, epsilon_lower_bound
from fedkge.audit.gaussian_bound import gaussian_epsilon, gaussian_lower_bound
from fedkge.audit.guesses import audit, corrected, right_guesses

ALPHA = 0.05
CANARIES = 10_000
Scores = NDArray[np.float64]
Coins = NDArray[np.bool_]

bound = cache(epsilon_lower_bound)


def allowed(trials: int, rate: float = ALPHA) -> int:
    """A correct audit has more false alarms than this with a chance of 1 in 10,000 at most."""
    return int(stats.binom.isf(1e-4, trials, rate))


def coins(random: np.random.Generator, count: int) -> Coins:
    return random.integers(0, 2, count).astype(np.bool_)


def respond(bits: Coins, epsilon: float, random: np.random.Generator) -> Scores:
    """Randomised response: the truth with chance e^epsilon / (1 + e^epsilon), which is exactly epsilon private."""
    truthful = random.random(len(bits)) < 1 / (1 + np.exp(-epsilon))
    return np.where(truthful, bits, ~bits).astype(np.float64)


@pytest.mark.parametrize(("epsilon", "mean"), [(0.5, 0.465), (1.0, 0.961), (2.0, 1.946), (4.0, 3.879)])
def test_randomised_response_exactly(epsilon: float, mean: float) -> None:
    right = stats.binom(CANARIES, 1 / (1 + np.exp(-epsilon)))
    numbers = np.arange(right.ppf(1e-7), right.isf(1e-7) + 1).astype(int)
    bounds = np.array([bound(int(number), CANARIES, CANARIES, 0.0) for number in numbers])
    weights = right.pmf(numbers)
    assert float(bounds @ weights) == pytest.approx(mean, abs=0.004)  # the expected values are means of trials
    assert (np.diff(bounds) >= 0).all()
    too_much = float(weights[bounds > epsilon].sum())
    assert too_much <= ALPHA + 1e-6
    assert too_much >= 0.8 * ALPHA  # no weaker than it has to be


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_randomised_response_with_delta_is_never_claimed_more_often(epsilon: float) -> None:
    count = 2000
    right = stats.binom(count, 1 / (1 + np.exp(-epsilon)))
    least = bisect_right(range(count + 1), epsilon, key=lambda number: bound(number, count, count, 1e-5))
    assert right.sf(least - 1) <= ALPHA


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_randomised_response_by_its_scores(epsilon: float) -> None:
    random, trials, bounds = np.random.default_rng(11), 200, []
    for _ in range(trials):
        bits = coins(random, CANARIES)
        right = right_guesses(respond(bits, epsilon, random), bits, 9000, random)
        bounds.append(bound(right, 9000, CANARIES, 0.0))
    assert sum(one > epsilon for one in bounds) <= allowed(trials)
    assert epsilon - 0.15 < float(np.mean(bounds)) < epsilon


@pytest.mark.parametrize("mu", [0.25, 0.5, 1.0, 2.0])
def test_a_gaussian_mechanism_stays_below_its_truth(mu: float) -> None:
    random, trials, delta = np.random.default_rng(12), 100, 1e-5
    truth = gaussian_epsilon(mu, delta)
    over, over_if_gaussian = 0, 0
    for _ in range(trials):
        bits = coins(random, 1000)
        found = audit({"mean": bits * mu + random.normal(size=1000)}, bits, delta, guesses=(200,))
        over += found.bound > truth
        over_if_gaussian += (found.gaussian_bound or 0.0) > truth
    assert over <= allowed(trials)
    assert over_if_gaussian <= allowed(trials)


def test_a_gaussian_mechanism_is_found() -> None:
    random = np.random.default_rng(13)
    bits = coins(random, 5000)
    found = audit({"mean": 1.0 * bits + random.normal(size=5000)}, bits)
    assert 1.0 < found.bound < (found.gaussian_bound or 0.0) < gaussian_epsilon(1.0)


def several(bits: Coins, random: np.random.Generator) -> dict[str, Scores]:
    """Ten attacks on a mechanism that leaks nothing: some nearly the same, one all ties, one half blind."""
    shared = random.normal(size=len(bits))
    scores = {f"near-{number}": shared + 0.3 * random.normal(size=len(bits)) for number in range(4)}
    scores |= {f"own-{number}": random.normal(size=len(bits)) for number in range(4)}
    scores["ties"] = random.integers(0, 2, len(bits)).astype(np.float64)
    scores["blind"] = np.where(random.random(len(bits)) < 0.5, np.nan, shared)
    return scores


def one(bits: Coins, random: np.random.Generator) -> dict[str, Scores]:
    return {"one": random.normal(size=len(bits))}


@pytest.mark.parametrize(
    ("attacks", "guesses"), [(one, (100,)), (one, (40, 100, 400)), (several, (100,)), (several, (40, 100, 200, 400))]
)
def test_false_alarms_on_a_mechanism_that_leaks_nothing(
    attacks: Callable[[Coins, np.random.Generator], dict[str, Scores]], guesses: tuple[int, ...]
) -> None:
    random, trials, alarms, alarms_if_gaussian = np.random.default_rng(14), 200, 0, 0
    for _ in range(trials):
        bits = coins(random, 400)
        found = audit(attacks(bits, random), bits, 1e-5, guesses)
        alarms += found.bound > 0
        alarms_if_gaussian += (found.gaussian_bound or 0.0) > 0
    assert alarms <= allowed(trials)
    assert alarms_if_gaussian <= allowed(trials)


def test_the_correction_is_what_keeps_it_honest() -> None:
    """The best of all thresholds at an uncorrected alpha cries wolf far more often than in 1 of 20 audits."""
    random, trials, alarms, count = np.random.default_rng(15), 100, 0, 400
    least = {
        number: next(right for right in range(number + 2) if right > number or bound(right, number, count, 0.0) > 0)
        for number in range(20, count + 1, 20)
    }
    for _ in range(trials):
        bits, scores = coins(random, count), random.normal(size=count)
        alarms += any(right_guesses(scores, bits, number, random) >= least[number] for number in least)
    assert alarms > allowed(trials)


@pytest.mark.parametrize(
    ("guesses", "most"), [(100, 3.49), (500, 5.09), (1000, 5.76), (5000, 7.14), (10_000, 7.50), (50_000, 7.43)]
)
def test_ceilings(guesses: int, most: float) -> None:
    """Half of the canaries guessed, all of them right, delta 1e-5."""
    assert ceiling(guesses, 2 * guesses, 1e-5) == pytest.approx(most, abs=0.006)


def test_the_ceiling_if_gaussian_and_under_correction() -> None:
    assert gaussian_lower_bound(5000, 5000, 10_000, 1e-5) == pytest.approx(13.6, abs=0.05)
    assert ceiling(500, 1000, 1e-5, corrected(0.95, 20)) < ceiling(500, 1000, 1e-5)
