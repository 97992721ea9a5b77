"""A graph without some of its names, and how its triples depend on each other for their names."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedkge.graph.graph import HEAD, TAIL, Graph, Triples, Vocabulary


def restricted(graph: Graph, names: AbstractSet[str]) -> Graph:
    """The graph with the entities among `names`, in their order, and the triples that mention no other.

    >>> graph = Graph.from_names("g", train=[("a", "r", "b"), ("b", "r", "c")])
    >>> small = restricted(graph, {"b", "c"})
    >>> list(small.entities), small.train.tolist()
    (['b', 'c'], [[0, 0, 1]])
    """
    kept = np.fromiter((name in names for name in graph.entities), bool, len(graph.entities))
    places = np.cumsum(kept, dtype=np.int32) - 1

    def among(triples: Triples) -> Triples:
        found = triples[kept[triples[:, HEAD]] & kept[triples[:, TAIL]]]
        return np.column_stack([places[found[:, HEAD]], found[:, 1], places[found[:, TAIL]]]).astype(np.int32)

    return replace(
        graph,
        entities=Vocabulary(tuple(name for name in graph.entities if name in names)),
        train=among(graph.train),
        valid=among(graph.valid),
        test=among(graph.test),
        elsewhere=among(graph.elsewhere),
    )


def mentions(triples: Triples, entities: int) -> NDArray[np.int64]:
    """How many different triples mention each entity; a triple from an entity to itself mentions it once.

    >>> mentions(np.array([[0, 0, 1], [1, 0, 1], [1, 0, 1]], np.int32), 3).tolist()
    [1, 2, 0]
    """
    distinct = np.unique(triples, axis=0) if len(triples) else triples.reshape(0, 3)
    loops = distinct[distinct[:, HEAD] == distinct[:, TAIL], HEAD]
    both = np.bincount(distinct[:, [HEAD, TAIL]].ravel(), minlength=entities)
    return (both - np.bincount(loops, minlength=entities)).astype(np.int64)


def sole_mentions(graph: Graph) -> int:
    """How many training triples are the only mention, in all of the graph, of one of their entities.

    >>> sole_mentions(Graph.from_names("g", train=[("a", "r", "b"), ("b", "r", "c"), ("c", "r", "b")]))
    1
    """
    train = np.unique(graph.train, axis=0) if len(graph.train) else graph.train.reshape(0, 3)
    counts = mentions(np.concatenate((graph.train, graph.valid, graph.test)), len(graph.entities))
    return int((counts[train[:, [HEAD, TAIL]]] == 1).any(axis=1).sum())
