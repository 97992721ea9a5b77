"""LiRA: equal to a twin that goes canary by canary with Gaussian log densities."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.attacks.lira import Shadows, offline, online
from fedkge.base.errors import DataError
from tests.attacks import area_under_curve


def log_density(value: float, mean: float, spread: float) -> float:
    return -0.5 * ((value - mean) / spread) ** 2 - math.log(spread * math.sqrt(2 * math.pi))


def medians(shadows: Shadows, canary: int, inside: bool) -> float:
    return statistics.median(
        float(score)
        for score, coin in zip(shadows.scores[:, canary], shadows.coins[:, canary], strict=True)
        if coin == inside
    )


def spread_of(shadows: Shadows, kinds: tuple[bool, ...]) -> float:
    squares = [
        (float(shadows.scores[run, canary]) - medians(shadows, canary, bool(coin))) ** 2
        for (run, canary), coin in np.ndenumerate(shadows.coins)
        if bool(coin) in kinds
    ]
    return math.sqrt(sum(squares) / len(squares))


def online_twin(observed: np.ndarray, shadows: Shadows) -> list[float]:
    spread = spread_of(shadows, (True, False))
    return [
        log_density(value, medians(shadows, canary, True), spread)
        - log_density(value, medians(shadows, canary, False), spread)
        for canary, value in enumerate(observed.tolist())
    ]


def offline_twin(observed: np.ndarray, shadows: Shadows) -> list[float]:
    spread = spread_of(shadows, (False,))
    return [(value - medians(shadows, canary, False)) / spread for canary, value in enumerate(observed.tolist())]


def draw(runs: int, canaries: int, seed: int) -> tuple[np.ndarray, Shadows]:
    random = np.random.default_rng(seed)
    half = random.random((runs // 2, canaries)) < 0.5
    coins = np.concatenate([half, ~half])
    return random.normal(size=canaries), Shadows(random.normal(size=coins.shape) + 2.0 * coins, coins)


@given(st.sampled_from([4, 6, 16]), st.integers(1, 7), st.integers(0, 10_000))
def test_both_forms_equal_the_twins(runs: int, canaries: int, seed: int) -> None:
    observed, shadows = draw(runs, canaries, seed)
    np.testing.assert_allclose(online(observed, shadows), online_twin(observed, shadows), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(offline(observed, shadows), offline_twin(observed, shadows), rtol=1e-9, atol=1e-9)


def test_offline_never_looks_at_runs_that_held_the_canary() -> None:
    observed, shadows = draw(8, 5, seed=1)
    spoiled = Shadows(np.where(shadows.coins, 1e9, shadows.scores), shadows.coins)
    np.testing.assert_array_equal(offline(observed, spoiled), offline(observed, shadows))


def test_no_spread_is_no_division_by_zero() -> None:
    shadows = Shadows(np.array([[3.0, 3.0], [1.0, 1.0]]), np.array([[True, True], [False, False]]))
    observed = np.array([3.0, 1.0])
    assert online(observed, shadows).tolist() == [2.0, -2.0]
    assert offline(observed, shadows).tolist() == [2.0, 0.0]


def test_canaries_of_unlike_levels_become_comparable() -> None:
    """A canary's level hides its membership from a raw score and not from either form."""
    random = np.random.default_rng(4)
    levels = random.normal(scale=10.0, size=400)
    half = random.random((4, 400)) < 0.5
    coins = np.concatenate([half, ~half])
    members = random.random(400) < 0.5
    scores = levels + 2.0 * coins + random.normal(size=coins.shape)
    observed = levels + 2.0 * members + random.normal(size=400)
    assert area_under_curve(observed, members) < 0.65
    for form in (online, offline):
        assert area_under_curve(form(observed, Shadows(scores, coins)), members) > 0.85


def test_a_canary_without_both_kinds_of_runs_asks_for_more_shadows() -> None:
    scores = np.zeros((2, 3))
    lopsided = Shadows(scores, np.array([[True, True, False], [True, False, False]]))
    with pytest.raises(DataError, match="1 of 3 canaries have no shadow run with them among 2: use more shadows"):
        online(np.zeros(3), lopsided)
    with pytest.raises(DataError, match="1 of 3 canaries have no shadow run without them"):
        offline(np.zeros(3), lopsided)
