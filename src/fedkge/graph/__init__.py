"""Knowledge graphs: the Graph itself, readers, named data sets, the demo graph, a generator, and splits into shards."""

from fedkge.graph.graph import (
    HEAD,
    RELATION,
    SPLITS,
    TAIL,
    Graph,
    Side,
    Triples,
    Vocabulary,
    distinct_triples,
    no_triples,
)

__all__ = [
    "HEAD",
    "RELATION",
    "SPLITS",
    "TAIL",
    "Graph",
    "Side",
    "Triples",
    "Vocabulary",
    "distinct_triples",
    "no_triples",
]
