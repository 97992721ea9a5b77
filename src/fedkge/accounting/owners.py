"""The guarantee of a triple that several clients hold, if each client protects it on its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from fedkge.accounting.accountants import Accountant, merged
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import Charge

MOST_GROUPS = 200
"""So many different groups of clients are tried one by one."""


def epsilon_of_owners(owners: Sequence[Sequence[Charge]], delta: float, accountant: Accountant) -> float:
    """Epsilon for a triple that all of these clients hold: everything that they release composes.

    >>> from fedkge.accounting.accountants import make_accountant
    >>> from fedkge.mechanisms.events import Gaussian
    >>> one, rdp = [Charge(Gaussian(4))], make_accountant("rdp")
    >>> epsilon_of_owners([one] * 4, 1e-5, rdp) == rdp.epsilon([Charge(Gaussian(4), 4)], 1e-5)
    True
    """
    return accountant.epsilon(merged(charge for charges in owners for charge in charges), delta)


def worst_epsilon(
    clients: Mapping[str, Sequence[Charge]], delta: float, accountant: Accountant, owners: int = 1
) -> float:
    """The largest epsilon of any triple that at most `owners` of the clients hold; with one owner each, the maximum.

    Clients that spent the same are alike. Where too many different groups are left to try, the bound is the one
    for a triple that all clients hold, which is at least as large.
    """
    if not 1 <= owners <= len(clients):
        raise ConfigurationError(
            f"owners: expected from 1 to {len(clients)} clients, got {owners}; 1 means that no triple is shared"
        )
    spent = [merged(charges) for charges in clients.values()]
    if math.comb(len(spent), owners) <= 10 * MOST_GROUPS or owners == 1:
        groups = {frozenset(Counter(group).items()) for group in combinations(spent, owners)}
        if len(groups) <= MOST_GROUPS:
            members = [[charges for charges, times in group for _ in range(times)] for group in groups]
            return max(epsilon_of_owners(group, delta, accountant) for group in members)
    if len(set(spent)) == 1:
        return epsilon_of_owners(spent[:owners], delta, accountant)
    return epsilon_of_owners(spent, delta, accountant)
