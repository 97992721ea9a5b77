"""To and from PyKEEN's `TriplesFactory`. PyKEEN is an extra: pip install 'fedkge[pykeen]'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedkge.base.errors import DataError, UnavailableError
from fedkge.graph.building import graph_of_tables
from fedkge.graph.graph import SPLITS, Graph, Vocabulary


def to_pykeen(graph: Graph) -> dict[str, Any]:
    """One `TriplesFactory` per split that has triples; ids and names are those of the graph.

    >>> graph = Graph.from_names("tiny", [("a", "likes", "b")])
    >>> to_pykeen(graph)["train"].num_entities  # doctest: +SKIP
    2
    """
    try:
        import torch  # noqa: PLC0415 (both are heavy, and an extra)
        from pykeen.triples import TriplesFactory  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError("PyKEEN is not installed: pip install 'fedkge[pykeen]'") from error
    return {
        split: TriplesFactory(
            mapped_triples=torch.as_tensor(graph.split(split).astype(np.int64)),
            entity_to_id=dict(graph.entities.index),
            relation_to_id=dict(graph.relations.index),
        )
        for split in SPLITS
        if len(graph.split(split))
    }


def from_pykeen(training: Any, validation: Any = None, testing: Any = None, *, name: str = "pykeen") -> Graph:
    """A Graph of up to three factories that share their ids, as those of a PyKEEN data set do.

    >>> from pykeen.datasets import Nations  # doctest: +SKIP
    >>> data = Nations()  # doctest: +SKIP
    >>> len(from_pykeen(data.training, data.validation, data.testing).train)  # doctest: +SKIP
    1592
    """
    tables = {}
    for split, factory in zip(SPLITS, (training, validation, testing), strict=True):
        if factory is None:
            continue
        if not hasattr(factory, "entity_to_id"):
            raise DataError(f"{split}: expected a TriplesFactory with names, got {type(factory).__name__}")
        if factory.entity_to_id != training.entity_to_id or factory.relation_to_id != training.relation_to_id:
            raise DataError(f"{split}: expected the ids of the training factory, got others: build it with its maps")
        tables[split] = np.asarray(factory.mapped_triples, dtype=np.int32).reshape(-1, 3)
    entities = _vocabulary(training.entity_to_id, "entity")
    return graph_of_tables(name, entities, _vocabulary(training.relation_to_id, "relation"), tables)


def _vocabulary(ids: Mapping[str, int], kind: str) -> Vocabulary:
    names = sorted(ids, key=ids.__getitem__)
    if [ids[name] for name in names] != list(range(len(names))):
        raise DataError(f"expected {kind} ids from 0 to {len(names) - 1}, each once, got others")
    return Vocabulary(tuple(names))
