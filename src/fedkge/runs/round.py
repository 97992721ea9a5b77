"""The messages of one round of a federation by client, and the part of them that a party saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError
from fedkge.base.short_repr import short_repr

Rows: TypeAlias = NDArray[np.float32]
Shared: TypeAlias = Literal["entities", "relations"]
"""Which table the clients share: entities in FedE, relations in FedR."""
Messages: TypeAlias = Mapping[str, Mapping[Shared, Rows]]
"""Tables by client and kind."""

NOTHING: Messages = MappingProxyType({})


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The messages of one round, or the part of them that a party holds.

    broadcasts  the rows that the server sent to clients at the start
    uploads     the rows that clients sent at the end
    results     the rows of each client after aggregation
    private     the tables that a client never shares, as they were at its upload
    """

    number: int
    broadcasts: Messages = field(default_factory=dict)
    uploads: Messages = field(default_factory=dict)
    results: Messages = field(default_factory=dict)
    private: Messages = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parties:
    """Who looks at a round: the server, one or more clients, or both together.

    >>> Parties(server=True).hold("client-0"), Parties(server=True).hold("client-0", private=True)
    (True, False)
    """

    server: bool = False
    clients: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.server and not self.clients:
            raise ConfigurationError("expected at least one party (the server, a client, or both), got none")

    @classmethod
    def of(cls, *clients: str, server: bool = False) -> Parties:
        """These clients, with or without the server."""
        return cls(server, frozenset(clients))

    def hold(self, client: str, private: bool = False) -> bool:
        """Whether these parties hold the messages of a client, or its `private` tables, which the server never sees."""
        return client in self.clients or (self.server and not private)
