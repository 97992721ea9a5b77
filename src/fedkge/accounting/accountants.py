"""What an accountant is, and the accountants by name.

An accountant turns charges into the epsilon that they cost at a delta. `pld` and `rdp` are sound: their epsilon is an
upper bound. `published` repeats the paper's formulas, which are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from fedkge.accounting.facts import Neighbours
from fedkge.base.errors import ConfigurationError
from fedkge.base.registry import look_up
from fedkge.mechanisms.events import Charge, Event

if TYPE_CHECKING:
    from fedkge.accounting.pld import PLDAccountant
    from fedkge.accounting.published import PublishedAccountant
    from fedkge.accounting.rdp import RDPAccountant

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_TRIPLE
"""The neighbouring relation of every accountant here."""


class Accountant(Protocol):
    """Turns charges into epsilon.

    Guarantees (only if `sound`): all releases that the charges paid for are together (epsilon, delta)-differentially
    private for graphs that differ by one triple, also if the adversary chose each query after seeing earlier answers.
    """

    @property
    def name(self) -> str:
        """As options and ledgers call it."""
        ...

    @property
    def sound(self) -> bool:
        """Whether epsilon is an upper bound."""
        ...

    def epsilon(self, charges: Sequence[Charge], delta: float) -> float:
        """What the charges cost together; infinite where nothing is guaranteed."""
        ...


def merged(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    """Equal events counted together, in the order of their first appearance; what has no steps is left out.

    >>> from fedkge.mechanisms.events import Gaussian
    >>> merged([Charge(Gaussian(1), 2), Charge(Gaussian(3)), Charge(Gaussian(1.0), 5)])
    (Charge(event=Gaussian(multiplier=1.0), steps=7), Charge(event=Gaussian(multiplier=3.0), steps=1))
    """
    steps: dict[Event, int] = {}
    for charge in charges:
        if charge.steps < 0:
            raise ConfigurationError(f"steps of a charge: expected a number >= 0, got {charge.steps}")
        if charge.steps:
            steps[charge.event] = steps.get(charge.event, 0) + charge.steps
    return tuple(Charge(event, count) for event, count in steps.items())


def check_delta(delta: float) -> float:
    """`delta` as a float between 0 and 1, or an error.

    >>> check_delta(1e-5)
    1e-05
    """
    number = float(delta)
    if not 0 < number < 1:
        raise ConfigurationError(f"delta: expected a number above 0 and below 1, got {delta}; 1e-5 is usual")
    return number


def _pld() -> PLDAccountant:
    from fedkge.accounting.pld import PLDAccountant  # noqa: PLC0415 (heavy)

    return PLDAccountant()


def _rdp() -> RDPAccountant:
    from fedkge.accounting.rdp import RDPAccountant  # noqa: PLC0415 (heavy)

    return RDPAccountant()


def _published() -> PublishedAccountant:
    from fedkge.accounting.published import PublishedAccountant  # noqa: PLC0415

    return PublishedAccountant()


ACCOUNTANTS: dict[str, Callable[[], Accountant]] = {"pld": _pld, "rdp": _rdp, "published": _published}
"""Every accountant by name; the libraries behind them are loaded when one is made."""


def make_accountant(name: str) -> Accountant:
    """The accountant called `name`, or an error that lists the near names.

    >>> make_accountant("rdp").sound, make_accountant("published").sound
    (True, False)
    """
    return look_up(ACCOUNTANTS, name, "accountant")()
