"""From scores to guesses, and from guesses to one bound that several attacks together support.

What is guessed may depend on the scores but never on the coins: the numbers of guesses are fixed beforehand, ties are
broken by a generator that knows nothing of the coins, and looking several times is paid for by dividing alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkge.audit.bound import CONFIDENCE, DELTA, alpha_of, check_delta, epsilon_lower_bound
from fedkge.audit.gaussian_bound import LABEL, gaussian_lower_bound
from fedkge.base.errors import ConfigurationError, DataError, NumericalError

SHARES = (0.1, 0.5)
"""Of the canaries: so many guesses, unless numbers are given. Few for a leak that shows in extreme scores, many for a
faint one."""

FEWEST = 50
"""Fewer guesses can show next to nothing and would only cost the others a share of alpha."""

TIES = 4_242
"""Seed of the order in which tied scores are guessed; the coins come from elsewhere."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack with one number of guesses: how many were right, and what follows at the shared confidence."""

    attack: str
    guesses: int
    right: int
    bound: float
    ceiling: float
    gaussian_bound: float | None
    scored: int
    """Canaries on which the attack had an opinion."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found. `bound` holds for all findings together: alpha was divided by their number."""

    canaries: int
    inserted: int
    delta: float
    confidence: float
    findings: tuple[Finding, ...]

    @property
    def comparisons(self) -> int:
        """By how much alpha was divided."""
        return len(self.findings)

    @property
    def best(self) -> Finding:
        """The finding with the highest bound; among equals the one with most right guesses."""
        return max(self.findings, key=lambda one: (one.bound, one.right / one.guesses))

    @property
    def bound(self) -> float:
        """Epsilon is at least this, at the given confidence, if the attacks and their guesses were fixed beforehand."""
        return self.best.bound

    @property
    def ceiling(self) -> float:
        """The largest bound that this audit could have shown."""
        return max(finding.ceiling for finding in self.findings)

    @property
    def gaussian_bound(self) -> float | None:
        """The same in the f-DP form: only if the mechanism is Gaussian-like; None where it is not, or delta is 0."""
        bounds = [finding.gaussian_bound for finding in self.findings if finding.gaussian_bound is not None]
        return max(bounds, default=None)

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "bound": self.bound,
            "ceiling": self.ceiling,
            "gaussian": {"bound": self.gaussian_bound, "holds": LABEL},
            "canaries": self.canaries,
            "inserted": self.inserted,
            "delta": self.delta,
            "confidence": self.confidence,
            "comparisons": self.comparisons,
            "findings": [asdict(finding) for finding in self.findings],
        }


def audit(
    scores_by_attack: Mapping[str, ArrayLike],
    bits: ArrayLike,
    delta: float = DELTA,
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
    gaussian: bool = True,
) -> AuditResult:
    """The epsilon lower bound that these scores of the canaries support, over all attacks and numbers of guesses.

    Attacks and `guesses` (a tenth and a half of the canaries, unless given) must have been fixed before the coins
    `bits` were looked at. NaN in the scores means that the attack has no opinion on a canary. `gaussian`: whether the
    mechanism may be Gaussian-like; then the sharper bound is computed too.

    >>> random = np.random.default_rng(1)
    >>> coins = random.integers(0, 2, 1000)
    >>> result = audit({"loud": coins + random.normal(0, 0.2, 1000), "blind": random.normal(size=1000)}, coins)
    >>> [(finding.attack, finding.guesses, finding.right) for finding in result.findings[:2]]
    [('loud', 100, 100), ('loud', 500, 500)]
    >>> round(result.bound, 2), round(result.ceiling, 2)
    (4.68, 4.68)
    """
    coins = _checked_bits(bits)
    numbers = tuple(dict.fromkeys(guesses)) or default_guesses(len(coins))
    check_delta(delta)
    for number in numbers:
        check_guesses(number, len(coins))
    if not scores_by_attack:
        raise ConfigurationError("expected the scores of at least one attack, got none")
    comparisons = len(numbers) * len(scores_by_attack)
    shared = corrected(confidence, comparisons)
    ceilings = {number: epsilon_lower_bound(number, number, len(coins), delta, shared) for number in numbers}
    findings = []
    for attack, scores in scores_by_attack.items():
        for number in numbers:
            right = right_guesses(scores, coins, number, np.random.default_rng(TIES))
            counts = right, number, len(coins)
            bound = epsilon_lower_bound(*counts, delta, shared)
            sharper = gaussian_lower_bound(*counts, delta, shared) if delta and gaussian else None
            scored = int(np.count_nonzero(~np.isnan(np.asarray(scores, dtype=np.float64))))
            findings.append(Finding(attack, number, right, bound, ceilings[number], sharper, scored))
    return AuditResult(len(coins), int(coins.sum()), delta, confidence, tuple(findings))


def corrected(confidence: float, comparisons: int) -> float:
    """The confidence that each of several findings needs, so that all hold together (Bonferroni).

    >>> round(corrected(0.95, 10), 4)
    0.995
    """
    return 1.0 - alpha_of(confidence) / comparisons


def default_guesses(canaries: int) -> tuple[int, ...]:
    """How many guesses an audit makes by default, from the number of canaries alone.

    >>> default_guesses(1000), default_guesses(200)
    ((100, 500), (100,))
    """
    numbers = [2 * int(share * canaries / 2) for share in SHARES]
    return tuple(number for number in numbers if number >= FEWEST) or (max(2, *numbers),)


def check_guesses(guesses: int, canaries: int) -> None:
    """Refuse a number of guesses that cannot be half "in" and half "out"."""
    if guesses < 2 or guesses % 2 or guesses > canaries:
        raise ConfigurationError(f"expected an even number of guesses from 2 to the {canaries} canaries, got {guesses}")


def right_guesses(scores: ArrayLike, bits: ArrayLike, guesses: int, random: np.random.Generator) -> int:
    """How many are right if the highest scores are guessed "in" and as many of the lowest "out".

    Ties, and canaries without a score, come in an order that `random` draws; those without a score stand in the middle
    and are guessed last.

    >>> right_guesses([3.0, 2.0, 1.0, 0.0], [True, False, False, False], 2, np.random.default_rng(1))
    2
    """
    coins = _checked_bits(bits)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != coins.shape:
        raise DataError(f"expected one score for each of the {len(coins)} canaries, got shape {values.shape}")
    if infinite := int(np.count_nonzero(np.isinf(values))):
        raise NumericalError(f"{infinite} of {len(values)} scores are infinite: check the attack and the training loss")
    check_guesses(guesses, len(coins))
    order = _order(values, random)
    lowest, highest = order[: guesses // 2], order[len(order) - guesses // 2 :]
    return int(np.count_nonzero(coins[highest]) + np.count_nonzero(~coins[lowest]))


def _order(values: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """The canaries from the lowest score to the highest, those without one in the middle."""
    shuffled = random.permutation(len(values))
    known = shuffled[~np.isnan(values[shuffled])]
    known = known[np.argsort(values[known], kind="stable")]
    unknown = shuffled[np.isnan(values[shuffled])]
    middle = len(known) // 2
    return np.concatenate([known[:middle], unknown, known[middle:]])


def _checked_bits(bits: ArrayLike) -> NDArray[np.bool_]:
    coins = np.asarray(bits)
    if coins.ndim != 1 or len(coins) < 2 or not np.isin(coins, (0, 1)).all():
        raise DataError(f"expected one bit for each of at least 2 canaries, got shape {coins.shape}")
    return coins.astype(np.bool_)
