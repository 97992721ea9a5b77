"""The same graph under other numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedkge.graph.graph import Graph, Triples, Vocabulary

Numbers = NDArray[np.int32]
"""For each old number the new one."""


def renumbered(graph: Graph, entities: Vocabulary, relations: Vocabulary, moves: tuple[Numbers, Numbers]) -> Graph:
    """The graph with these vocabularies; `moves` say where each entity and each relation has gone.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    >>> turned = np.array([1, 0], np.int32), np.array([0], np.int32)
    >>> renumbered(graph, Vocabulary(("b", "a")), graph.relations, turned).train.tolist()
    [[1, 0, 0]]
    """
    of_entities, of_relations = moves

    def moved(triples: Triples) -> Triples:
        heads, kinds, tails = triples.T
        return np.column_stack([of_entities[heads], of_relations[kinds], of_entities[tails]])

    return replace(
        graph,
        entities=entities,
        relations=relations,
        train=moved(graph.train),
        valid=moved(graph.valid),
        test=moved(graph.test),
        elsewhere=moved(graph.elsewhere),
    )
