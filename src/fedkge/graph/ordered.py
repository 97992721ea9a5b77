"""A graph whose numbers tell nothing about its triples: names in their alphabetical order.

Readers number names as they meet them, so the first two entities are those of the first triple in the file. Numbers
show in entities.txt, in tables and in exports. A graph is therefore put in order before anything follows from its
numbers: then they are a function of the set of names alone.
"""

from __future__ import annotations

import numpy as np

from fedkge.graph.graph import Graph, Vocabulary
from fedkge.graph.renumbering import Numbers, renumbered


def ordered(graph: Graph) -> Graph:
    """The same triples, with entities and relations in the order of their names.

    >>> graph = Graph.from_names("g", train=[("b", "r", "c"), ("a", "q", "b")])
    >>> list(ordered(graph).entities), ordered(graph).train.tolist()
    (['a', 'b', 'c'], [[1, 1, 2], [0, 0, 1]])
    """
    entities, of_entities = _places(graph.entities)
    relations, of_relations = _places(graph.relations)
    return renumbered(graph, entities, relations, (of_entities, of_relations))


def _places(names: Vocabulary) -> tuple[Vocabulary, Numbers]:
    """The names in order, and for each old number the new one."""
    order = sorted(range(len(names)), key=names.names.__getitem__)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return Vocabulary(tuple(names[number] for number in order)), places
