"""What clients release and promise before a run begins, in memory: an error there costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedkge.accounting.ledger import Ledger
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.name_release import NameFiles, with_released_names
from fedkge.defences.planning import client_defence
from fedkge.graph import Graph
from fedkge.graph.shards import client_names
from fedkge.runs.strategies import pool, strategy_of


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What clients have released and promised in memory, which nobody has used yet."""

    ledger: Ledger
    names: NameFiles


def drafted(shards: Sequence[Graph], configuration: Configuration, kept: bool = False) -> Draft | None:
    """What every client releases before its promise, and its promise; an error where a budget cannot be kept.

    `kept`: the run has a ledger on disk.
    Nothing is written: the run that follows takes over exactly these sizes, names and promises, and draws no others.
    """
    if not chosen_defence(configuration).keeps_ledger:
        return None
    ledger, names = Ledger.in_memory(kept), NameFiles()
    trained = trained_shards(released_shards(shards, configuration, ledger, names), configuration)
    for number, (name, shard) in enumerate(zip(client_names(len(trained)), trained, strict=True)):
        client_defence(configuration, name, shard, ledger, number)
    return Draft(ledger, names)


def released_shards(
    shards: Sequence[Graph], configuration: Configuration, ledger: Ledger | None, names: NameFiles
) -> tuple[Graph, ...]:
    """The shards with the names that clients release; as they are unless names follow a threshold."""
    if ledger is None or configuration.privacy.names != "threshold":
        return tuple(shards)
    return tuple(
        with_released_names(configuration, client, shard, ledger, names, number)
        for number, (client, shard) in enumerate(zip(client_names(len(shards)), shards, strict=True))
    )


def trained_shards(shards: Sequence[Graph], configuration: Configuration) -> Sequence[Graph]:
    """What clients train on: their shards, or one graph of all of them."""
    return (pool(shards),) if strategy_of(configuration).pooled else shards
