"""Our bounds against those of jax_privacy 2.0.0, an implementation that shares no line with ours.

The numbers below were computed with it once, by `python -m tests.statistical.test_audit_jax_privacy`. Where it is
installed (`pip install jax-privacy`; it brings JAX, so it is not part of the development environment), a larger grid is
compared directly.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

from fedkge.audit.bound import epsilon_lower_bound, p_value
from fedkge.audit.gaussian_bound import gaussian_lower_bound

Case = tuple[int, int, int, float, float]

TOLERANCE = 1e-6

# (right, guesses, canaries, delta, confidence): epsilon, and epsilon if Gaussian-like
REFERENCE: dict[Case, tuple[float, float]] = {
    (25, 50, 200, 1e-06, 0.95): (0.0, 0.0),
    (45, 50, 200, 0.001, 0.95): (1.1883484544206604, 1.6845456647307089),
    (50, 50, 200, 1e-05, 0.999): (1.8373036394327869, 2.793536066078066),
    (60, 100, 1000, 1e-05, 0.95): (0.04954866357098912, 0.0435230317349967),
    (90, 100, 1000, 1e-06, 0.999): (1.2303173439573494, 1.7360595804194041),
    (100, 100, 1000, 1e-06, 0.95): (3.4902158675692996, 6.169473778072274),
    (250, 500, 1000, 0.001, 0.999): (0.0, 0.0),
    (375, 500, 1000, 0.001, 0.95): (0.8285360505455766, 1.0732355197775187),
    (495, 500, 1000, 1e-05, 0.999): (3.2023982181294874, 4.644791711281592),
    (1500, 2000, 10000, 1e-06, 0.999): (0.9362244740413674, 1.1646755841368304),
    (1980, 2000, 10000, 1e-06, 0.95): (4.216898661872296, 7.119595189716495),
    (2000, 2000, 10000, 0.001, 0.999): (0.0, 5.577556057102787),
}


def their_bounds(case: Case) -> tuple[float, float]:
    """By its public interface: scores of 1 are above the threshold and guessed "in", all others are not guessed."""
    auditing = pytest.importorskip("jax_privacy.auditing")
    right, guesses, canaries, delta, confidence = case
    members = canaries // 2
    inside = np.concatenate([np.ones(right), np.zeros(max(members - right, 1))])
    outside = np.concatenate([np.ones(guesses - right), np.zeros(canaries - len(inside) - guesses + right)])
    auditor = auditing.CanaryScoreAuditor(inside, outside)
    options: dict[str, Any] = {"threshold_strategy": auditing.Explicit(0.5)}
    return (
        float(auditor.epsilon_one_run(1 - confidence, delta, **options)),
        float(auditor.epsilon_one_run_fdp(1 - confidence, delta, **options)),
    )


def grid() -> list[Case]:
    shares, sizes = (0.5, 0.6, 0.75, 0.9, 0.99, 1.0), ((50, 200), (100, 1000), (500, 1000), (2000, 10_000))
    return [
        (round(share * guesses), guesses, canaries, delta, confidence)
        for (guesses, canaries), share, delta, confidence in product(sizes, shares, (1e-6, 1e-5, 1e-3), (0.95, 0.999))
    ]


def ours(case: Case) -> tuple[float, float]:
    return epsilon_lower_bound(*case), gaussian_lower_bound(*case)


@pytest.mark.parametrize("case", REFERENCE, ids=str)
def test_the_recorded_bounds(case: Case) -> None:
    assert ours(case) == pytest.approx(REFERENCE[case], abs=TOLERANCE)


def test_the_grid() -> None:
    pytest.importorskip("jax_privacy")
    for case in grid():
        assert ours(case) == pytest.approx(their_bounds(case), abs=TOLERANCE), case


def test_p_values() -> None:
    auditing = pytest.importorskip("jax_privacy.auditing")
    for right, guesses, canaries, delta, _ in grid():
        for epsilon in (0.0, 0.5, 2.0, 5.0):
            theirs = auditing._one_run_p_value(canaries, guesses, right, epsilon, delta)
            assert p_value(epsilon, right, guesses, canaries, delta) == pytest.approx(theirs, abs=1e-9)


if __name__ == "__main__":
    apart = [np.abs(np.subtract(ours(case), their_bounds(case))) for case in grid()]
    print("largest difference over the grid:", np.max(apart, axis=0))  # noqa: T201
    for case in grid()[::11]:
        print(f"    {json.dumps(case).replace('[', '(').replace(']', ')')}: {their_bounds(case)},")  # noqa: T201
