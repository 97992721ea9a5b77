"""fedkge's side of the comparison: a model, and how fast it trains and ranks on one thread.

As a program (`python -m benchmarks.work MODEL GROUP`) it trains in a process of its own and prints its peak memory.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.report import peak_memory
from fedkge.evaluation import rank
from fedkge.graph import Graph, Triples
from fedkge.graph.datasets import load
from fedkge.models import Embedding, ModelShape, initial_tables, make_scorer
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions

DATA = "fb15k-237"
DIMENSION, NEGATIVES, BATCH = 128, 256, 64


def fresh_embedding(model: str, graph: Graph, dimension: int = DIMENSION) -> Embedding:
    """A model with start values, the same at every call."""
    shape = ModelShape(dimension=dimension)
    scorer = make_scorer(model, shape)
    tables = initial_tables(scorer, shape, len(graph.entities), len(graph.relations), np.random.default_rng(0))
    return Embedding(scorer, tables, shape.margin)


def make_trainer(embedding: Embedding, group_size: int, optimiser: str = "lazy-adam") -> Trainer:
    """A trainer as in the paper: batch 64, 256 negatives on both sides in turns, shared by `group_size` triples."""
    negatives = Negatives(embedding.candidates, NEGATIVES, group_size, "both")
    return Trainer(embedding, negatives, TrainingOptions(batch_size=BATCH, optimiser=optimiser))


def train_rate(trainer: Trainer, triples: Triples, batches: int, generator: np.random.Generator) -> float:
    """Triples per CPU-second."""
    chosen = triples[generator.choice(len(triples), batches * BATCH, replace=False)]
    began = time.process_time()
    trainer.epoch(chosen, generator)
    return len(chosen) / (time.process_time() - began)


def rank_seconds(embedding: Embedding, graph: Graph, count: int) -> tuple[float, dict[str, float]]:
    """CPU-seconds for both sides of the first `count` test triples, and the metrics."""
    known = graph.all_triples
    began = time.process_time()
    metrics = rank(embedding, graph.test[:count], known, threads=1).metrics()
    return time.process_time() - began, metrics


def _train_and_report(model: str, group_size: int) -> dict[str, object]:
    graph = load(DATA)
    trainer = make_trainer(fresh_embedding(model, graph), group_size)
    trainer.epoch(graph.train[:: 1 if group_size > 1 else 4], np.random.default_rng(0))
    return {"peak_bytes": peak_memory(), "torch_loaded": "torch" in sys.modules}


if __name__ == "__main__":
    print(json.dumps(_train_and_report(sys.argv[1], int(sys.argv[2]))))
