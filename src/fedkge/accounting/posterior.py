"""What an adversary's guess about one triple is worth: the one place where such numbers are computed.

The adversary knows all other triples of the client, sees everything that was released, and finds "holds it" and "does
not hold it" equally likely beforehand. Reports, `fedkge account`, `fedkge federation check` and the tables in the
documentation print what `guess_worth` returns. It is a function of public numbers alone: scales, epsilons, noise
multipliers, sampling rates. Derivation: docs/proofs/posterior.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedkge.accounting.accountants import merged
from fedkge.mechanisms.events import Charge, Geometric, PublishedGaussian, PublishedTest, Responses, Size

EVEN = 0.5
"""The chance beforehand, and of a coin."""


@dataclass(frozen=True, slots=True)
class GuessWorth:
    """Chances about one triple, for an adversary who knows all others. Each lies between 0.5 (a coin) and 1.

    >>> charges = [Charge(Geometric(Geometric.scale_for(3.8))), Charge(Responses(0.2))]  # a copy at epsilon 4
    >>> worth = guess_worth(charges, epsilon=4.0, delta=1e-5)
    >>> [round(100 * chance) for chance in (worth.typical, worth.counts_agree or 0, worth.answer or 0, worth.worst)]
    [88, 98, 55, 98]
    """

    worst: float
    """How sure the least lucky outcome makes the adversary: e^epsilon / (1 + e^epsilon), up to `delta`."""
    typical: float
    """How often the best guess is right, on average over all coins of the mechanism."""
    delta: float
    """How far the laws may be from ones for which `worst` holds without exception; 0 for counts and answers alone."""
    unasked: float | None = None
    """`typical` for a triple that the copy did not ask about; None without a copy."""
    counts_agree: float | None = None
    """How sure the counts alone make the adversary when all cells of the triple point the same way; None without."""
    answer: float | None = None
    """How often an answer, taken alone, is right; None without a copy."""

    def record(self) -> dict[str, float | None]:
        """The chances as plain values, for JSON."""
        return {
            "prior": EVEN,
            "typical": self.typical,
            "unasked": self.unasked,
            "counts_agree": self.counts_agree,
            "answer": self.answer,
            "worst": self.worst,
            "worst_up_to_delta": self.delta,
        }


def guess_worth(charges: Sequence[Charge], epsilon: float, delta: float, adaptive: bool = False) -> GuessWorth | None:
    """What a guess is worth after these charges, which cost `epsilon` at `delta`; None where nothing is guaranteed.

    `typical` is (1 + TV) / 2, where TV, the total variation between "with the triple" and "without", is delta at
    epsilon 0 by privacy-loss distributions: exact (to the grid) for counts and answers, an upper bound for noisy steps.
    If later noise was chosen `adaptive`ly, only (epsilon, delta) bounds it.
    """
    counted = merged(charges)
    if not math.isfinite(epsilon) or any(isinstance(each.event, PublishedTest | PublishedGaussian) for each in counted):
        return None
    pure = [_pure_epsilon(each) for each in counted]
    if adaptive or None in pure:
        worst, not_pure = sureness(epsilon), delta
    else:
        worst, not_pure = sureness(math.fsum(each or 0.0 for each in pure)), 0.0
    if adaptive:
        return GuessWorth(worst, min(1.0, worst + delta * (1 - worst)), delta)
    cells = math.fsum(_pure_epsilon(each) or 0.0 for each in counted if isinstance(each.event, Geometric))
    answers = [each.event.epsilon for each in counted if type(each.event) is Responses]  # a figure is no answer
    return GuessWorth(
        worst,
        chance_right(counted),
        not_pure,
        unasked=chance_right([each for each in counted if type(each.event) is not Responses]) if answers else None,
        counts_agree=sureness(cells) if cells else None,
        answer=sureness(max(answers)) if answers else None,
    )


def _pure_epsilon(charge: Charge) -> float | None:
    """The most by which any outcome of the charge changes the logarithm of the odds; None where nothing bounds it."""
    if isinstance(charge.event, Geometric | Size):
        return charge.event.sensitivity * charge.steps / charge.event.scale
    return charge.steps * charge.event.epsilon if isinstance(charge.event, Responses) else None


def sureness(epsilon: float) -> float:
    """The chance that odds of e^epsilon to one mean.

    >>> round(sureness(0.2), 2), sureness(0.0), sureness(1e6)
    (0.55, 0.5, 1.0)
    """
    return 1 / (1 + math.exp(-min(epsilon, 700.0)))


def chance_right(charges: Sequence[Charge]) -> float:
    """How often the best guess at even odds is right, over the coins of all these releases together.

    >>> from fedkge.mechanisms.events import Gaussian
    >>> round(chance_right([Charge(Responses(0.2))]), 3), round(chance_right([Charge(Gaussian(1.0))]), 3)
    (0.55, 0.691)
    """
    from fedkge.accounting.pld import PLDAccountant  # noqa: PLC0415 (heavy)

    return EVEN * (1 + PLDAccountant().delta(charges, 0.0))
