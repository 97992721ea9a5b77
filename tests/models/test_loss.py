"""The loss stays finite and right where exponentials overflow."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.models.loss import self_adversarial


@pytest.mark.parametrize("size", [0.0, 1.0, 50.0, 89.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scores_stay_finite(size, dtype):
    positive = np.array([-size, size], dtype=dtype)
    negative = np.array([[size, -size], [-size, size]], dtype=dtype)
    result = self_adversarial(positive, negative, temperature=1.0)
    assert np.isfinite(result.loss)
    assert np.isfinite(result.positive).all()
    assert np.isfinite(result.negative).all()
    weights = np.exp(negative.astype(np.longdouble) - size)
    weights /= weights.sum(axis=1, keepdims=True)
    expected = (
        np.logaddexp(0, -positive.astype(np.longdouble)).sum() + (weights * np.logaddexp(0, negative)).sum()
    ) / 2
    assert result.loss == pytest.approx(float(expected), rel=1e-5)


def test_temperature_zero_weighs_all_alike():
    result = self_adversarial(np.zeros(1), np.array([[-1.0, 3.0]]), temperature=0.0)
    np.testing.assert_allclose(result.negative, 0.5 / (1 + np.exp([[1.0, -3.0]])))
