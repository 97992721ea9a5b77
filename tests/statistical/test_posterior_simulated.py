"""An adversary plays against the real mechanisms: it guesses right as often as `guess_worth` says, no more, no less.

Each of many worlds has one triple that a fair coin put there or not. The adversary knows all other triples, looks at
the two noisy counts and the answer, and guesses by the odds of docs/proofs/posterior.md. False-alarm rate of each
check: see `tests/statistical/detectors.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.accounting.posterior import GuessWorth, guess_worth
from fedkge.mechanisms import counts as counting
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.mechanisms.events import Charge, Responses
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.responses import respond
from tests.statistical import detectors
from tests.statistical.detectors import alarms

WORLDS = 40_000


def noisy_values(counts: NoisyCounts) -> np.ndarray:
    """The noisy count of every cell; where it was not kept, one that is below the threshold."""
    values = np.full(counts.size, counts.threshold - 1)
    values[counts.keys] = counts.values
    return values


def play(scale: float, answers: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every world: were the best guesses with and without the answer right, and did both counts agree?"""
    coins = np.random.default_rng(seed)
    held = coins.integers(0, 2, WORLDS).astype(bool)
    others = coins.integers(0, 4, (WORLDS, 2))
    cells = 2 * np.arange(WORLDS)[:, None] + [0, 1]
    rest = np.repeat(cells.ravel(), others.ravel())
    rows = np.concatenate([cells[held], np.column_stack((rest, np.full(len(rest), 2 * WORLDS)))])
    source = NoiseSource.research(seed)
    released = NoisyCounts.release(rows, 2 * WORLDS + 1, scale, source)
    assert released.threshold == 1, "a cell that was not kept is then as good as one that says no"
    beyond = noisy_values(released)[cells] - others
    votes = (np.abs(beyond) - np.abs(beyond - 1)) / scale
    asked = np.arange(WORLDS)
    said = np.isin(asked, respond(asked, np.flatnonzero(held), answers, source))
    by_counts = votes.sum(axis=1)
    with_answer = by_counts + np.where(said, answers, -answers)
    ties = coins.integers(0, 2, (2, WORLDS)).astype(bool)
    guesses = [
        np.where(np.abs(odds) < 1e-9, tie, odds > 0) for odds, tie in zip((with_answer, by_counts), ties, strict=True)
    ]
    return guesses[0] == held, guesses[1] == held, votes[:, 0] == votes[:, 1]


def expected(scale: float, answers: float) -> GuessWorth:
    found = guess_worth([Charge(counting.Geometric(scale)), Charge(Responses(answers))], 2 / scale + answers, 1e-5)
    assert found is not None
    return found


@pytest.mark.parametrize(("epsilon", "share"), [(2.0, 0.95), (4.0, 0.95), (4.9, 0.95), (5.0, 0.25), (8.0, 0.25)])
def test_guesses_are_right_as_often_as_is_said(epsilon, share):
    scale, answers = 2 / (share * epsilon), (1 - share) * epsilon
    right, by_counts, agree = play(scale, answers, seed=round(10 * epsilon))
    said = expected(scale, answers)
    assert not alarms(detectors.share(int(right.sum()), WORLDS, said.typical))
    assert not alarms(detectors.share(int(by_counts.sum()), WORLDS, said.unasked))
    assert not alarms(detectors.share(int(by_counts[agree].sum()), int(agree.sum()), said.counts_agree))


def test_half_the_noise_makes_guesses_better_than_is_said(monkeypatch):
    """A planted bug: the adversary is then right more often than the promise's own numbers say."""
    honest = counting.two_sided
    monkeypatch.setattr(counting, "two_sided", lambda size, scale, source: honest(size, scale / 2, source))
    right, _, _ = play(2 / 3.8, 0.2, seed=40)
    assert right.mean() > expected(2 / 3.8, 0.2).typical
    assert alarms(detectors.share(int(right.sum()), WORLDS, expected(2 / 3.8, 0.2).typical))
