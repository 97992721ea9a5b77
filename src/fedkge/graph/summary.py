"""What a graph holds, in numbers: the first thing to look at, and what `fedkge data describe` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.graph.building import triple_keys
from fedkge.graph.graph import HEAD, RELATION, SPLITS, TAIL, Graph, Triples

MANY = 1.5
"""From this mean number of partners on, a side of a relation counts as N (Bordes et al. 2013)."""

Mask: TypeAlias = NDArray[np.bool_]

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """Counts of a graph; dictionaries have the splits as keys. Degrees and categories are those of train."""

    name: str
    entities: int
    relations: int
    triples: dict[str, int]
    self_loops: dict[str, int]
    unseen: dict[str, int]
    """Triples with an entity or a relation that never occurs in train."""
    also_in_train: dict[str, int]
    """Held-out triples that train holds too."""
    removed_duplicates: int
    entities_in_train: int
    degree_mean: float
    """Over the entities that occur in train; a self-loop counts twice."""
    degree_median: float
    degree_max: int
    categories: dict[str, int]
    """Relations of each kind; "1-N" means one head, many tails."""
    notice: str


def describe(graph: Graph) -> GraphSummary:
    """Count what the graph holds.

    >>> summary = describe(Graph.from_names("tiny", [("a", "r", "b"), ("a", "r", "c")], test=[("d", "r", "d")]))
    >>> summary.triples, summary.unseen["test"], summary.self_loops["test"], summary.categories["1-N"]
    ({'train': 2, 'valid': 0, 'test': 1}, 1, 1, 1)
    """
    degrees = np.bincount(graph.train[:, [HEAD, TAIL]].ravel(), minlength=len(graph.entities))
    degrees = degrees[degrees > 0]
    return GraphSummary(
        name=graph.name,
        entities=len(graph.entities),
        relations=len(graph.relations),
        triples={split: len(graph.split(split)) for split in SPLITS},
        self_loops={split: _self_loops(graph.split(split)) for split in SPLITS},
        unseen=unseen_counts(graph),
        also_in_train=_also_in_train(graph),
        removed_duplicates=graph.removed_duplicates,
        entities_in_train=len(degrees),
        degree_mean=float(degrees.mean()) if len(degrees) else 0.0,
        degree_median=float(np.median(degrees)) if len(degrees) else 0.0,
        degree_max=int(degrees.max(initial=0)),
        categories=relation_categories(graph),
        notice=graph.notice,
    )


def _self_loops(triples: Triples) -> int:
    return int((triples[:, HEAD] == triples[:, TAIL]).sum())


def unseen_counts(graph: Graph) -> dict[str, int]:
    """How many held-out triples have an entity or a relation that train does not have: nobody can learn those.

    >>> unseen_counts(Graph.from_names("tiny", [("a", "r", "b")], valid=[("a", "r", "c"), ("b", "r", "a")]))
    {'valid': 1, 'test': 0}
    """
    return {split: int(unseen_in_train(graph, graph.split(split)).sum()) for split in SPLITS[1:]}


def unseen_in_train(graph: Graph, triples: Triples) -> Mask:
    """Which triples have an entity or a relation that no train triple has.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")], test=[("b", "r", "a"), ("a", "r", "new")])
    >>> unseen_in_train(graph, graph.test).tolist()
    [False, True]
    """
    entity_seen = np.zeros(len(graph.entities), dtype=np.bool_)
    entity_seen[graph.train[:, HEAD]] = True
    entity_seen[graph.train[:, TAIL]] = True
    relation_seen = np.zeros(len(graph.relations), dtype=np.bool_)
    relation_seen[graph.train[:, RELATION]] = True
    seen = entity_seen[triples[:, HEAD]] & relation_seen[triples[:, RELATION]] & entity_seen[triples[:, TAIL]]
    return ~seen


def _also_in_train(graph: Graph) -> dict[str, int]:
    return {split: int(_common(graph, graph.train, graph.split(split)).sum()) for split in SPLITS[1:]}


def leaked(graph: Graph, triples: Triples) -> Mask:
    """Which held-out triples somebody trains on: the graph itself, or another client of the same federation.

    Ranking them measures memorisation.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")], test=[("b", "r", "a"), ("a", "r", "b")])
    >>> leaked(graph, graph.test).tolist()
    [False, True]
    """
    return _common(graph, np.concatenate([graph.train, graph.elsewhere]), triples)


def leaked_counts(graph: Graph) -> dict[str, int]:
    """How many triples of valid and test somebody trains on.

    >>> leaked_counts(Graph.from_names("tiny", [("a", "r", "b")], test=[("a", "r", "b")]))
    {'valid': 0, 'test': 1}
    """
    return {split: int(leaked(graph, graph.split(split)).sum()) for split in SPLITS[1:]}


def _common(graph: Graph, known: Triples, asked: Triples) -> Mask:
    """Which of the asked triples are among the known ones."""
    if not len(asked) or not len(known):
        return np.zeros(len(asked), dtype=np.bool_)
    keys, wanted = (triple_keys(table, len(graph.entities), len(graph.relations)) for table in (known, asked))
    if keys is None or wanted is None:
        there = set(map(tuple, known.tolist()))
        return np.array([tuple(triple) in there for triple in asked.tolist()], dtype=np.bool_)
    keys.sort()
    found: Mask = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
    return found


def relation_categories(graph: Graph) -> dict[str, int]:
    """How many relations of train are 1-1, 1-N, N-1 and N-N.

    >>> relation_categories(Graph.from_names("tiny", [("a", "r", "b"), ("c", "r", "b"), ("a", "s", "b")]))
    {'1-1': 1, '1-N': 0, 'N-1': 1, 'N-N': 0}
    """
    triples = np.bincount(graph.train[:, RELATION], minlength=len(graph.relations))
    used = triples > 0
    partners = []
    for side in (HEAD, TAIL):
        # The number of triples over the number of distinct ends on this side: partners per end.
        pairs = np.sort(graph.train[:, RELATION].astype(np.int64) * len(graph.entities) + graph.train[:, side])
        firsts = pairs[np.diff(pairs, prepend=-1) != 0]
        distinct = np.bincount(firsts // max(len(graph.entities), 1), minlength=len(graph.relations))
        partners.append(triples[used] / distinct[used])
    tails_per_head, heads_per_tail = partners
    category = 2 * (heads_per_tail >= MANY) + (tails_per_head >= MANY)
    return dict(zip(CATEGORIES, np.bincount(category, minlength=len(CATEGORIES)).tolist(), strict=True))
