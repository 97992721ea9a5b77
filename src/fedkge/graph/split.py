"""Splits of one graph into shards, one per client.

A shard is a Graph with vocabularies of its own: only names that occur in the client's training triples.
Clients find what they have in common by name. A training triple is in at most one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.base.registry import look_up
from fedkge.graph.graph import HEAD, RELATION, SPLITS, TAIL, Graph, Triples, Vocabulary
from fedkge.graph.numbered_names import NumberedNames
from fedkge.graph.shards import ShardCounts, Shards, ShardSummary, client_names, summarise
from fedkge.graph.streams import decoded_lines

__all__ = [
    "DEFAULT_OVERLAP",
    "RULES",
    "ShardCounts",
    "ShardSummary",
    "Shards",
    "from_assignment",
    "read_assignment",
    "split",
    "summarise",
]

DEFAULT_OVERLAP = 0.25
NOBODY = -1
CHUNK = 4096

Owners: TypeAlias = NDArray[np.int32]
"""A client's number for every triple, or NOBODY."""


def split(graph: Graph, clients: int, by: str = "entity", seed: int = 0, overlap: float | None = None) -> Shards:
    """Deal a graph to clients by "entity", "relation" or "triple"; valid and test follow the rule of train.

    - entity (the paper's): every entity has a home with one client, equally many with each; besides, each other client
      gets the fraction `overlap` of them, drawn at random. So 0 is a partition, 1 gives everything to everybody, and
      the default 0.25 gives each of three clients half of all entities. A client's triples are those with both ends
      inside; one that several clients could have goes to one of them, to the one with fewer triples more likely.
    - relation (FedE, FedLU): relations are dealt at random, equally many each; a triple goes with its relation.
    - triple: triples are dealt at random, equally many each.

    Held-out triples with a name that the client's training triples lack are dropped; the summary counts them. True
    triples among a client's names that it did not get are kept as `elsewhere`: a model that learned one of them from
    another client must not be punished for it in filtered ranking.
    One client gets the graph itself.

    >>> from fedkge.graph.synthetic import synthetic_graph
    >>> shards = split(synthetic_graph(200, 10, 3000, seed=1), clients=3, by="relation", seed=7)
    >>> [shard.name for shard in shards], sum(len(shard.train) for shard in shards)
    (['client-0', 'client-1', 'client-2'], 2700)
    """
    rule = look_up(RULES, by, "split rule")
    if clients < 1 or seed < 0:
        raise ConfigurationError(f"expected at least 1 client and a seed from 0, got {clients} and {seed}")
    if overlap is not None and (by != "entity" or not 0 <= overlap <= 1):
        raise ConfigurationError(f"expected an overlap from 0 to 1 with a split by entity, got {overlap} by {by}")
    if clients == 1:
        return Shards(graph.name, (graph,), summarise((graph,)))
    random = np.random.default_rng(np.random.SeedSequence(seed))
    owners = rule(graph, clients, DEFAULT_OVERLAP if overlap is None else overlap, random)
    return _assemble(graph, clients, [graph.split(name) for name in SPLITS], owners)


def _by_entity(graph: Graph, clients: int, overlap: float, random: np.random.Generator) -> list[Owners]:
    count = len(graph.entities)
    _require(clients, count, "entities")
    owned = np.zeros((count, clients), dtype=bool)
    home = np.empty(count, dtype=np.int32)
    home[random.permutation(count)] = np.arange(count) % clients
    for client in range(clients):
        at_home = np.flatnonzero(home == client)
        for other in range(clients):
            share = len(at_home) if other == client else round(overlap * len(at_home))
            owned[random.permutation(at_home)[:share], other] = True
    return [_choose(triples, owned, random) for triples in map(graph.split, SPLITS)]


def _choose(triples: Triples, owned: NDArray[np.bool_], random: np.random.Generator) -> Owners:
    """One client that owns both ends of each triple; where several do, one at random, the poorer the likelier."""
    owners = np.full(len(triples), NOBODY, dtype=np.int32)
    held = np.zeros(owned.shape[1], dtype=np.int64)
    order = random.permutation(len(triples))
    for start in range(0, len(order), CHUNK):
        rows = order[start : start + CHUNK]
        possible = owned[triples[rows, HEAD]] & owned[triples[rows, TAIL]]
        weight = ((1 + held.mean()) / (1 + held)) ** 4
        # The least of exponential waiting times: client c is first with probability proportional to its weight.
        waiting = np.where(possible, random.standard_exponential(possible.shape) / weight, np.inf)
        owners[rows] = np.where(possible.any(axis=1), waiting.argmin(axis=1), NOBODY)
        held += np.bincount(owners[rows] + 1, minlength=len(held) + 1)[1:]
    return owners


def _by_relation(graph: Graph, clients: int, _: float, random: np.random.Generator) -> list[Owners]:
    used = np.unique(graph.train[:, RELATION])
    _require(clients, len(used), "relations in train")
    owner = np.full(len(graph.relations), NOBODY, dtype=np.int32)
    owner[random.permutation(used)] = np.arange(len(used)) % clients
    return [owner[triples[:, RELATION]] for triples in map(graph.split, SPLITS)]


def _by_triple(graph: Graph, clients: int, _: float, random: np.random.Generator) -> list[Owners]:
    _require(clients, len(graph.train), "training triples")
    return [
        random.permutation(np.arange(len(triples), dtype=np.int32) % clients) for triples in map(graph.split, SPLITS)
    ]


Rule: TypeAlias = Callable[[Graph, int, float, np.random.Generator], list[Owners]]
RULES: dict[str, Rule] = {"entity": _by_entity, "relation": _by_relation, "triple": _by_triple}


def _require(clients: int, available: int, what: str) -> None:
    if clients > available:
        raise ConfigurationError(
            f"expected at most as many clients as {what}, got {clients} for {available}: ask for fewer"
        )


def from_assignment(
    graph: Graph, clients: NDArray[np.integer], splits: NDArray[np.integer] | None = None, keep_unseen: bool = False
) -> Shards:
    """A split that was decided elsewhere: a client's number (or -1) for every triple of train, then valid, then test.

    `splits` (0 train, 1 valid, 2 test) overrules the graph's own. Published splits hold out triples with names that are
    not in the client's train; they are dropped and counted like in `split`, unless `keep_unseen`.

    >>> graph = Graph.from_names("tiny", train=[("a", "likes", "b"), ("b", "likes", "a"), ("a", "likes", "c")])
    >>> [len(shard.train) for shard in from_assignment(graph, np.array([0, 1, 0]))]
    [2, 1]
    """
    triples = graph.all_triples
    if splits is None:
        splits = np.repeat(np.arange(3), [len(graph.split(name)) for name in SPLITS])
    if not len(triples) == len(clients) == len(splits):
        raise DataError(
            f"expected a client and a split for each of the {len(triples)} triples of {graph.name}, "
            f"got {len(clients)} and {len(splits)}"
        )
    if len(clients) == 0 or clients.min() < NOBODY or splits.min() < 0 or splits.max() > 2:
        raise DataError("expected clients from 0 (or -1 for none) and splits 0, 1 or 2, got others")
    tables = [triples[splits == number] for number in range(3)]
    owners = [clients[splits == number].astype(np.int32) for number in range(3)]
    return _assemble(graph, int(clients.max()) + 1, tables, owners, keep_unseen)


def read_assignment(path: Path) -> tuple[Owners, Owners]:
    """Client and split of every triple, from a file (also .xz) with lines client<TAB>split; see `from_assignment`."""
    rows = []
    for number, line in decoded_lines(path):
        fields = line.split("\t")
        digits = [field.removeprefix("-") for field in fields]
        if len(fields) != 2 or not all(text.isascii() and text.isdigit() and len(text) < 10 for text in digits):
            raise DataError(f"{path}:{number}: expected client<TAB>split (two numbers), got {line[:100]!r}")
        rows.append((int(fields[0]), int(fields[1])))
    table = np.array(rows, dtype=np.int32).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _assemble(
    graph: Graph, clients: int, tables: Sequence[Triples], owners: Sequence[Owners], keep_unseen: bool = False
) -> Shards:
    shards, unseen = [], np.zeros(3, dtype=np.int64)
    for client, name in enumerate(client_names(clients)):
        mine = [table[owner == client] for table, owner in zip(tables, owners, strict=True)]
        if len(mine[0]) == 0:
            raise ConfigurationError(
                f"{name} would have no training triples of {graph.name}: ask for fewer clients or more overlap"
            )
        known = np.concatenate(mine) if keep_unseen else mine[0]
        others = np.concatenate([table[owner != client] for table, owner in zip(tables, owners, strict=True)])
        shard, dropped = _localise(graph, name, known, [*mine, others])
        shards.append(shard)
        unseen += dropped
    outside = [int(np.count_nonzero(owner == NOBODY)) for owner in owners]
    summary = summarise(shards, (outside[0], outside[1], outside[2]), (0, int(unseen[1]), int(unseen[2])))
    return Shards(graph.name, tuple(shards), summary)


def _localise(graph: Graph, name: str, known: Triples, tables: Sequence[Triples]) -> tuple[Graph, list[int]]:
    """A graph of the tables train, valid, test and elsewhere with ids of its own, in the order of the source's ids, and
    how many of the first three were dropped.
    """
    entity_of, relation_of = np.full(len(graph.entities), NOBODY), np.full(len(graph.relations), NOBODY)
    entities, relations = np.unique(known[:, [HEAD, TAIL]]), np.unique(known[:, RELATION])
    entity_of[entities], relation_of[relations] = np.arange(len(entities)), np.arange(len(relations))
    local = []
    for table in tables:
        numbers = np.stack(
            [entity_of[table[:, HEAD]], relation_of[table[:, RELATION]], entity_of[table[:, TAIL]]], axis=1
        )
        local.append(np.ascontiguousarray(numbers[(numbers != NOBODY).all(axis=1)], dtype=np.int32))
    shard = Graph(
        name,
        Vocabulary(_take(graph.entities.names, entities)),
        Vocabulary(_take(graph.relations.names, relations)),
        train=local[0],
        valid=local[1],
        test=local[2],
        elsewhere=local[3],
        notice=graph.notice,
    )
    return shard, [len(table) - len(kept) for table, kept in zip(tables[:3], local[:3], strict=True)]


def _take(names: Sequence[str], positions: NDArray[np.int32]) -> Sequence[str]:
    if isinstance(names, NumberedNames):
        return names.take(positions)
    return tuple(names[position] for position in positions.tolist())
