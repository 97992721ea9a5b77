"""The paper's own accounting, to reproduce its numbers. NOT SOUND: its epsilon is no upper bound of anything.

What is wrong with it, and what `ptr` does instead: docs/proofs/published.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedkge.accounting.accountants import check_delta, merged
from fedkge.accounting.beforehand import apart
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import Charge, PublishedGaussian, PublishedTest, SampledGaussian, SampledTest, Size

MOST_ORDER = 256
Known = SampledGaussian | PublishedGaussian | SampledTest | PublishedTest


@dataclass(frozen=True)
class PublishedAccountant:
    """The paper's formulas, as printed (the printed p squared read as q squared).

    `respect_alpha_range` keeps to the orders that the lemma behind epsilon_g allows; without it smaller numbers come
    out, which the paper's tables need. `delta_split` is the share of delta that converts the order into epsilon; the
    paper leaves the rest to the tests.

    >>> charges = [Charge(SampledTest(rate=64 / 90000, gap=1, test=1, gradient=1, failure=1e-6), steps=1406)]
    >>> round(PublishedAccountant().epsilon(charges, 1e-5), 4)
    5.7682
    """

    respect_alpha_range: bool = True
    delta_split: float = 1.0
    name: str = "published"
    sound: bool = False

    def epsilon(self, charges: Sequence[Charge], delta: float) -> float:
        """The least epsilon over the allowed whole orders."""
        return self.epsilon_and_order(charges, delta)[0]

    def epsilon_and_order(self, charges: Sequence[Charge], delta: float) -> tuple[float, int]:
        """Epsilon, and the order that gives it; infinite where no order is allowed."""
        sizes, counted = _apart(charges)
        if not counted:
            return sizes, 2
        events = [_known(charge) for charge in counted]
        orders = [order for order in range(2, MOST_ORDER + 1) if self._allows(events, order)]
        found = [(sizes + self.epsilon_at(counted, delta, order), order) for order in orders]
        return min(found, default=(math.inf, 0))

    def epsilon_at(self, charges: Sequence[Charge], delta: float, order: int) -> float:
        """Epsilon at one order, allowed or not."""
        total = math.log(1 / (self.delta_split * check_delta(delta))) / (order - 1)
        for charge in merged(charges):
            event = _known(charge)
            passed = event.passed if isinstance(event, PublishedTest) else 1.0
            step = passed * gradient_term(event.rate, _noise(event), order)
            if not isinstance(event, SampledGaussian | PublishedGaussian):
                step += selection_term(event.rate, event.gap, event.test, order)
            total += charge.steps * step
        return total

    def _allows(self, events: Sequence[Known], order: int) -> bool:
        if not self.respect_alpha_range:
            return True
        return all(order_is_allowed(event.rate, _noise(event), order) for event in events)


def _apart(charges: Sequence[Charge]) -> tuple[float, tuple[Charge, ...]]:
    """The cost of sizes (pure epsilon, so it adds up), and the charges that the paper has formulas for."""
    sizes = [charge for charge in charges if isinstance(charge.event, Size)]
    rest = merged(charge for charge in charges if not isinstance(charge.event, Size))
    return apart(sizes)[0], rest


def gradient_term(rate: float, noise: float, order: float) -> float:
    """epsilon_g of one step, as printed: divided by sigma where the lemma has its square.

    >>> gradient_term(64 / 90000, 1.0, 2)
    2.0227160493827164e-06
    """
    return 2 * rate**2 * order / noise


def order_is_allowed(rate: float, noise: float, order: float) -> bool:
    """Whether the lemma behind epsilon_g holds at this order.

    >>> order_is_allowed(64 / 90000, 1.0, 3), order_is_allowed(64 / 90000, 1.0, 8)
    (True, False)
    """
    length = math.log1p(1 / (rate * (order - 1)))
    first = noise**2 * length / 2 - 2 * math.log(noise)
    above = noise**2 * length**2 / 2 - math.log(5) - 2 * math.log(noise)
    second = above / (length + math.log(rate * order) + 1 / (2 * noise**2))
    return 1 < order <= min(first, second)


def selection_term(rate: float, gap: float, test: float, order: int) -> float:
    """epsilon_s of one step, as printed: selection and test, amplified apart from the gradient of the same batch."""

    def unsampled(at: float) -> float:
        return at / (8 * gap**2) + at / (2 * test**2)

    second = unsampled(2)
    logs = [0.0, 2 * math.log(rate) + math.log(math.comb(order, 2) * min(4 * math.expm1(second), 2 * math.exp(second)))]
    for power in range(3, order + 1):
        combinations = math.log(2 * math.comb(order, power))
        logs.append(power * math.log(rate) + combinations + (power - 1) * unsampled(power))
    largest = max(logs)
    if largest == 0.0:
        return math.log1p(math.fsum(math.exp(value) for value in logs[1:])) / (order - 1)
    return (largest + math.log(math.fsum(math.exp(value - largest) for value in logs))) / (order - 1)


def _noise(event: Known) -> float:
    return event.multiplier if isinstance(event, SampledGaussian | PublishedGaussian) else event.gradient


def _known(charge: Charge) -> Known:
    if isinstance(charge.event, SampledGaussian | PublishedGaussian | SampledTest | PublishedTest):
        return charge.event
    raise ConfigurationError(
        f"the paper prints no formula for {type(charge.event).__name__}; expected a sampled Gaussian or a test, "
        "account it with pld or rdp"
    )
