"""fedkge: federated knowledge-graph embedding that proves and measures what each party gives away.

>>> import fedkge as fk
>>> graph = fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1)
>>> shards = fk.split(graph, clients=2, by="relation", seed=7)
>>> run = fk.train(shards, model="transe", rounds=2, dimension=8, negatives=8, seed=3)
>>> sorted(run.evaluate())
['client-0', 'client-1']
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fedkge.api.accounts import account
    from fedkge.api.attacks import attack
    from fedkge.api.auditing import audit
    from fedkge.api.comparing import compare
    from fedkge.api.exports import export
    from fedkge.api.options import TrainOptions
    from fedkge.api.predictions import predict
    from fedkge.api.reports import report
    from fedkge.api.run import Run
    from fedkge.api.training import open_run, resume, train
    from fedkge.api.tuning import Choice, Range, tune
    from fedkge.graph.datasets import load
    from fedkge.graph.graph import Graph
    from fedkge.graph.split import Shards, split
    from fedkge.graph.synthetic import synthetic_graph

_HOMES = {
    "Choice": "fedkge.api.tuning",
    "Graph": "fedkge.graph.graph",
    "Range": "fedkge.api.tuning",
    "Run": "fedkge.api.run",
    "Shards": "fedkge.graph.split",
    "TrainOptions": "fedkge.api.options",
    "account": "fedkge.api.accounts",
    "attack": "fedkge.api.attacks",
    "audit": "fedkge.api.auditing",
    "compare": "fedkge.api.comparing",
    "export": "fedkge.api.exports",
    "load": "fedkge.graph.datasets",
    "open_run": "fedkge.api.training",
    "predict": "fedkge.api.predictions",
    "report": "fedkge.api.reports",
    "resume": "fedkge.api.training",
    "split": "fedkge.graph.split",
    "synthetic_graph": "fedkge.graph.synthetic",
    "train": "fedkge.api.training",
    "tune": "fedkge.api.tuning",
}
"""Where each public name is defined."""

__all__ = [
    "Choice",
    "Graph",
    "Range",
    "Run",
    "Shards",
    "TrainOptions",
    "__version__",
    "account",
    "attack",
    "audit",
    "compare",
    "export",
    "load",
    "open_run",
    "predict",
    "report",
    "resume",
    "split",
    "synthetic_graph",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: `import fedkge` itself takes milliseconds."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fedkge' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names alone."""
    return list(__all__)


class _Face(ModuleType):
    """Keeps `fedkge.audit` and `fedkge.report` functions, although rooms of these names are imported as well.

    Python puts an imported submodule into its package under its name. Here a public function stands in that place;
    `from fedkge.audit import ...` finds the room all the same.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
