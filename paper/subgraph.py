"""A small piece of a large graph, for a quick look."""

from __future__ import annotations

import numpy as np

from fedkge.graph import HEAD, TAIL, Graph, Triples


def most_frequent(graph: Graph, entities: int) -> Graph:
    """The triples among the `entities` that occur most often in train; names without a triple are left out.

    >>> graph = Graph.from_names("g", train=[("a", "r", "b"), ("b", "r", "a"), ("a", "s", "c")])
    >>> list(most_frequent(graph, 2).entities)
    ['a', 'b']
    """
    counts = np.bincount(graph.train[:, [HEAD, TAIL]].ravel(), minlength=len(graph.entities))
    chosen = np.zeros(len(graph.entities), dtype=bool)
    chosen[np.argsort(-counts, kind="stable")[:entities]] = True

    def named(triples: Triples) -> list[tuple[str, str, str]]:
        among = triples[chosen[triples[:, HEAD]] & chosen[triples[:, TAIL]]]
        return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in among.tolist()]

    return Graph.from_names(
        f"{graph.name}, {entities} most frequent entities", named(graph.train), named(graph.valid), named(graph.test)
    )
