"""The classifier of the shadow attack: its sign is learnt from shadows, and it is at chance where nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fedkge.attacks.shadow import shadow_scores
from fedkge.audit.metrics import auc
from fedkge.base.errors import ConfigurationError, DataError


def world(
    seed: int, effect: tuple[float, ...], targets: int = 600, shadows: int = 2, level: float = 3.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Coins and features of one attacked run and of shadows in pairs."""
    random = np.random.default_rng(seed)
    halves = random.random((shadows // 2, targets)) < 0.5
    coins = np.stack([one for half in halves for one in (half, ~half)])
    members, levels = random.random(targets) < 0.5, level * random.normal(size=(targets, len(effect)))

    def features(bits: np.ndarray) -> np.ndarray:
        return levels + np.where(bits[:, None], effect, 0.0) + random.normal(size=levels.shape)

    return members, features(members), np.stack([features(one) for one in coins]), coins


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_sign_of_each_feature_is_learnt(sign: float) -> None:
    """A score that falls with membership leaks as much as one that rises."""
    members, observed, shadows, coins = world(1, (1.5 * sign, -1.5, 0.0))
    found = auc(shadow_scores(observed, shadows, coins), members)
    assert found.low > 0.75
    assert auc(observed[:, 0], members).value < 0.65  # the triples' own levels hide it from who has no shadows


def test_a_turned_attacked_run_shows_below_a_half_and_never_as_chance() -> None:
    members, observed, shadows, coins = world(2, (2.0,), level=0.0)
    assert auc(shadow_scores(-observed, -shadows, coins), members).low > 0.8
    assert auc(shadow_scores(-observed, shadows, coins), members).high < 0.2


def test_more_shadows_teach_levels_better() -> None:
    areas = []
    for number in (2, 16):
        members, observed, shadows, coins = world(3, (1.5,), targets=4000, shadows=number)
        areas.append(auc(shadow_scores(observed, shadows, coins), members).value)
    assert areas[1] > areas[0] + 0.02


def test_where_nothing_leaks_it_alarms_in_at_most_five_percent() -> None:
    """300 worlds without an effect, two-sided; 9 % has a chance below 0.3 % at 5 %."""
    alarms = 0
    for seed in range(300):
        members, observed, shadows, coins = world(seed, (0.0, 0.0, 0.0), targets=300)
        found = auc(shadow_scores(observed, shadows, coins), members)
        alarms += not found.low <= 0.5 <= found.high
    assert alarms <= 27


def test_scores_are_the_likelihood_ratio_of_the_normal_model() -> None:
    """Written out: features and their means over shadows are jointly normal; densities with the coin in and out."""
    _, observed, shadows, coins = world(4, (1.0, -0.5), targets=400)
    levels = shadows.mean(axis=0)
    pairs = np.where(coins[0][:, None], shadows[0] - shadows[1], shadows[1] - shadows[0])
    effect, noise = pairs.mean(axis=0), np.cov(pairs.T, bias=True) / 2
    between = np.cov(levels.T, bias=True) - noise / 2
    assert np.linalg.eigvalsh(between).min() > 0
    joint = np.block([[between + noise, between], [between, between + noise / 2]])
    centre = levels.mean(axis=0)
    both = np.hstack([observed, levels])
    inside, outside = (
        multivariate_normal(np.concatenate([centre + side * effect / 2, centre]), joint).logpdf(both)
        for side in (1, -1)
    )
    found = shadow_scores(observed, shadows, coins)
    np.testing.assert_allclose(found, inside - outside, atol=1e-3)


def test_a_feature_without_spread_and_repeated_features_do_no_harm() -> None:
    members, observed, shadows, coins = world(5, (1.5,))
    more = [np.concatenate([part, part, np.ones_like(part)], axis=-1) for part in (observed, shadows)]
    plain, padded = shadow_scores(observed, shadows, coins), shadow_scores(*more, coins)
    assert auc(padded, members).value == pytest.approx(auc(plain, members).value, abs=0.01)


def test_shadows_must_come_in_pairs() -> None:
    _, observed, shadows, coins = world(6, (1.0,), shadows=4)
    with pytest.raises(ConfigurationError, match="expected an even number of shadow federations, 2 or more, got 3"):
        shadow_scores(observed, shadows[:3], coins[:3])
    with pytest.raises(DataError, match="pairs with opposite coins"):
        shadow_scores(observed, shadows[[0, 2]], np.stack([coins[0], coins[0]]))
