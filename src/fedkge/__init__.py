"""fedkge: federated knowledge-graph embedding that proves and measures what each party gives away.

>>> import fedkge as fk
>>> graph = fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1)
>>> shards = fk.split(graph, clients=2, by="relation", seed=7)
>>> run = fk.train(shards, model="transe", rounds=2, dimension=8, negatives=8, seed=3)
>>> sorted(run.evaluate())
['client-0', 'client-1']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fedkge.api.training import open_run, resume, train
    from fedkge.experiments.recorded_audit import run_audit
    from fedkge.graph.datasets import load
    from fedkge.graph.graph import Graph
    from fedkge.graph.split import Shards, split
    from fedkge.graph.synthetic import synthetic_graph

_HOMES = {
    "Graph": "fedkge.graph.graph",
    "Shards": "fedkge.graph.split",
    "load": "fedkge.graph.datasets",
    "open_run": "fedkge.api.training",
    "resume": "fedkge.api.training",
    "run_audit": "fedkge.experiments.recorded_audit",
    "split": "fedkge.graph.split",
    "synthetic_graph": "fedkge.graph.synthetic",
    "train": "fedkge.api.training",
}

__all__ = ["Graph", "Shards", "load", "open_run", "resume", "run_audit", "split", "synthetic_graph", "train"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: `import fedkge` itself takes milliseconds."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fedkge' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
