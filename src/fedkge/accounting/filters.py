"""Renyi filters: a budget that holds even if noise, or the time to stop, is chosen from earlier releases.

The sum of costs is a guarantee only if the costs are fixed in advance. A Renyi filter gives one if they are not. It
admits the next charge only while the total stays below a bound that was fixed before the first charge. The bound, not
the running total, is the guarantee (docs/proofs/composition.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedkge.accounting.accountants import check_delta
from fedkge.accounting.beforehand import apart
from fedkge.accounting.failures import failure_mass
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.mechanisms.events import Charge

if TYPE_CHECKING:
    from fedkge.accounting.rdp import Curve

UNPLANNED_ORDERS = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0, 63.0)
"""What a filter without a plan may stop by; each has an equal share of delta."""


@dataclass(frozen=True)
class RenyiFilter:
    """Admits charges, however they are chosen, until (epsilon, delta) would no longer be certain.

    Several orders may not share one delta, since which of them holds in the end may depend on what was seen.
    `planned`, the charges that are expected, picks the one order that admits most of them, which has all of delta;
    without it twelve orders have a twelfth each. The tests of propose, test, release may fail as often as planned.

    >>> from fedkge.mechanisms.events import SampledGaussian
    >>> step = Charge(SampledGaussian(rate=0.05, multiplier=1), steps=100)
    >>> kept = RenyiFilter(epsilon=8, delta=1e-5, planned=[Charge(step.event, 500)])
    >>> kept.admits([Charge(step.event, 300)], [step]), kept.admits([Charge(step.event, 600)], [step])
    (True, False)
    >>> kept.report
    8.0
    """

    epsilon: float
    delta: float
    planned: Sequence[Charge] = ()

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if not 0 < self.epsilon < math.inf:
            raise ConfigurationError(f"epsilon: expected a budget above 0, got {self.epsilon}")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "planned", tuple(self.planned))
        if failure_mass(self.planned) >= self.delta:
            raise PrivacyError(
                f"delta: expected more than the planned chance of failure, {failure_mass(self.planned):.3g}, got "
                f"{self.delta:g}; choose a smaller delta_t, fewer steps or a larger delta"
            )

    @property
    def report(self) -> float:
        """What may be said about everything that was admitted: the budget."""
        return self.epsilon

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders that may certify the total, fixed before anything is seen."""
        if not self.planned:
            return UNPLANNED_ORDERS
        from fedkge.accounting.rdp import ORDERS, total_curve  # noqa: PLC0415 (heavy)

        before, rest = apart(self.planned)
        costs = dict(zip(ORDERS, total_curve(rest), strict=True))
        return (max(ORDERS, key=lambda order: self.bound(order, self._delta, before) / costs[order]),)

    @property
    def _delta(self) -> float:
        return self.delta - failure_mass(self.planned)

    def admits(self, charges: Iterable[Charge], following: Iterable[Charge]) -> bool:
        """Whether `following` may be spent after `charges`. Nothing may be spent after a refusal."""
        from fedkge.accounting.rdp import ORDERS, total_curve  # noqa: PLC0415 (heavy)

        everything = (*charges, *following)
        if failure_mass(everything) > failure_mass(self.planned) * (1 + 1e-12):
            return False
        before, rest = apart(everything)
        total: Curve = total_curve(rest)
        share = self._delta / len(self.orders)
        return any(total[ORDERS.index(order)] <= self.bound(order, share, before) for order in self.orders)

    def bound(self, order: float, delta: float, before: float) -> float:
        """The largest divergence of this order that still proves epsilon at `delta`, less what was spent `before`."""
        return self.epsilon - before - math.log1p(-1 / order) + math.log(delta * order) / (order - 1)
