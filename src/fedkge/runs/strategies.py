"""Strategies: which tables the clients share. The baselines are strategies too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedkge.base.registry import look_up
from fedkge.configuration import Configuration
from fedkge.graph import Graph
from fedkge.runs.round import Shared


@dataclass(frozen=True, slots=True)
class Strategy:
    """The shared tables, and whether all data is pooled first."""

    shared: tuple[Shared, ...]
    pooled: bool = False

    @property
    def exchanges_entities(self) -> bool:
        """Whether clients send each other entity rows, through the server: what attacks read."""
        return "entities" in self.shared and not self.pooled


STRATEGIES: dict[str, Strategy] = {
    "fede": Strategy(shared=("entities",)),
    "fedr": Strategy(shared=("relations",)),
    "isolated": Strategy(shared=()),
    "pooled": Strategy(shared=("entities",), pooled=True),
}


def make_strategy(name: str) -> Strategy:
    """The strategy called `name`, or an error that lists similar names.

    >>> make_strategy("fedr").shared
    ('relations',)
    """
    return look_up(STRATEGIES, name, "strategy")


def strategy_of(configuration: Configuration) -> Strategy:
    """The strategy that a configuration names."""
    return make_strategy(configuration.federation.strategy)


def pool(shards: Sequence[Graph]) -> Graph:
    """All shards' triples in one graph, names matched by equality. This baseline has no privacy.

    >>> one = Graph.from_names("one", train=[("a", "r", "b")])
    >>> two = Graph.from_names("two", train=[("b", "r", "a")])
    >>> pool([one, two]).train.tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    if len(shards) == 1:
        return shards[0]

    def named(split: str) -> list[tuple[str, str, str]]:
        return [
            (shard.entities[head], shard.relations[relation], shard.entities[tail])
            for shard in shards
            for head, relation, tail in shard.split(split).tolist()
        ]

    return Graph.from_names(
        "pooled", train=named("train"), valid=named("valid"), test=named("test"), notice=shards[0].notice
    )
