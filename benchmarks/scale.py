"""Two million entities and ten million triples: training and ranking a sample within three times the tables' memory.

The graph is generated in one process; each measurement runs in another, so that only its own memory counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import call_module, peak_memory, save, show

ENTITIES, RELATIONS, TRIPLES = 2_000_000, 100, 10_000_000
DIMENSION, NEGATIVES, GROUP, BATCH = 128, 256, 64, 64
STEPS, SAMPLE = 5000, 100
BUDGET = 3.0
"""Peak memory, in units of the entity table and the relation table together."""
WAYS = ("trainer", "federation")
"""The training loop by itself, and all of `fedkge.train` with its server, its one client and what they exchange."""


def generate(folder: Path, entities: int, triples: int) -> dict[str, Any]:
    """Write the three splits of a synthetic graph to a folder."""
    from fedkge.graph.synthetic import synthetic_graph  # noqa: PLC0415 (each process imports what it uses)

    began = time.perf_counter()
    graph = synthetic_graph(entities, RELATIONS, triples, seed=1, valid_fraction=0.001, test_fraction=0.001)
    for split in ("train", "valid", "test"):
        np.save(folder / f"{split}.npy", graph.split(split))
    return {"seconds": time.perf_counter() - began, "peak_bytes": peak_memory()}


def _read(folder: Path, entities: int) -> Any:
    from fedkge.graph import Graph, Vocabulary  # noqa: PLC0415
    from fedkge.graph.synthetic import NumberedNames  # noqa: PLC0415

    splits = {split: np.load(folder / f"{split}.npy") for split in ("train", "valid", "test")}
    names = (Vocabulary(NumberedNames("e", range(entities))), Vocabulary(NumberedNames("r", range(RELATIONS))))
    return Graph("large", *names, **splits)


def trainer(folder: Path, model: str, entities: int, steps: int) -> dict[str, Any]:
    """Train and rank with the parts that a client is made of."""
    from fedkge.evaluation import evaluate  # noqa: PLC0415
    from fedkge.models import Embedding, ModelShape, initial_tables, make_scorer  # noqa: PLC0415
    from fedkge.models.negatives import Negatives  # noqa: PLC0415
    from fedkge.models.training import Trainer, TrainingOptions, batches  # noqa: PLC0415

    graph, shape = _read(folder, entities), ModelShape(dimension=DIMENSION)
    scorer, generator = make_scorer(model, shape), np.random.default_rng(0)
    tables = initial_tables(scorer, shape, entities, RELATIONS, generator)
    embedding = Embedding(scorer, tables, shape.margin)
    options = TrainingOptions(batch_size=BATCH, optimiser="adagrad", learning_rate=0.1)
    learner = Trainer(embedding, Negatives(entities, NEGATIVES, GROUP, "both"), options)
    began, losses = time.perf_counter(), []
    for batch, _ in zip(batches(graph.train, BATCH, generator), range(steps), strict=False):
        losses.append(learner.step(batch, generator))
    trained, after_training = time.perf_counter(), peak_memory()
    evaluation = evaluate(embedding, graph, sample=SAMPLE, controls=False, threads=2)
    return {
        "tables_bytes": tables.entities.nbytes + tables.relations.nbytes,
        "training_peak_bytes": after_training,
        "peak_bytes": peak_memory(),
        "training_seconds": trained - began,
        "triples_per_second": steps * BATCH / (trained - began),
        "ranking_seconds": time.perf_counter() - trained,
        "loss": [float(np.mean(losses[:100])), float(np.mean(losses[-100:]))],
        "mrr": evaluation.metrics()["both.realistic.mrr"],
    }


def federation(folder: Path, model: str, entities: int, steps: int) -> dict[str, Any]:
    """The same through `fedkge.train`: a federation of one. The final ranking takes a sample as test split."""
    from dataclasses import replace  # noqa: PLC0415

    import fedkge  # noqa: PLC0415

    graph = _read(folder, entities)
    graph = replace(graph, test=graph.test[:SAMPLE], valid=graph.valid[:SAMPLE])
    began = time.perf_counter()
    run = fedkge.train(
        graph,
        model=model,
        dimension=DIMENSION,
        rounds=1,
        local_steps=steps,
        optimiser="adagrad",
        learning_rate=0.1,
        negative_group=GROUP,
        evaluate_every=0,
        seed=1,
        threads=2,
    )
    relations = run.tensors["relations/client-0"]
    return {
        "tables_bytes": run.tensors["entities"].nbytes + relations.nbytes,
        "peak_bytes": peak_memory(),
        "seconds": time.perf_counter() - began,
        "mrr": run.metrics[-1]["both.realistic.mrr"],
    }


def main(arguments: list[str]) -> int:
    """Generate, measure each way, print and save; 1 if a way needs more than the budget."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--model", default="transe")
    parser.add_argument("--entities", type=int, default=ENTITIES)
    parser.add_argument("--triples", type=int, default=TRIPLES)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--no-save", action="store_true", help="do not write results/scale.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        size = (str(options.entities), str(options.triples))
        generated = call_module("benchmarks.scale", "generate", folder, *size)
        print(f"generated in {generated['seconds']:.0f} s, at most {generated['peak_bytes'] / 1e9:.2f} GB")
        arguments = [folder, options.model, size[0], str(options.steps)]
        results = {way: call_module("benchmarks.scale", way, *arguments) for way in options.ways}
    for result in results.values():
        result["times_tables"] = result["peak_bytes"] / result["tables_bytes"]
    show(
        f"{options.entities:,} entities, {options.triples:,} triples, {options.model}, dimension {DIMENSION}",
        ("way", "tables GB", "budget GB", "peak GB", "times tables"),
        [_row(way, result) for way, result in results.items()],
    )
    setting = {**vars(options), "dimension": DIMENSION, "negatives": NEGATIVES, "group": GROUP, "sample": SAMPLE}
    if not options.no_save:
        print(f"saved to {save('scale', {'setting': setting, 'generation': generated, 'ways': results})}")
    return 1 if any(result["times_tables"] > BUDGET for result in results.values()) else 0


def _row(way: str, result: dict[str, Any]) -> tuple[str, ...]:
    numbers = (result["tables_bytes"], BUDGET * result["tables_bytes"], result["peak_bytes"])
    judgement = (
        f"{result['times_tables']:.2f} {'≤' if result['times_tables'] <= BUDGET else '[bold red]>[/]'} {BUDGET:g}"
    )
    return (way, *(f"{number / 1e9:.2f}" for number in numbers), judgement)


if __name__ == "__main__":
    verb, place, *rest = sys.argv[1:]
    if verb == "generate":
        answer = generate(Path(place), *map(int, rest))
    else:
        answer = {"trainer": trainer, "federation": federation}[verb](Path(place), rest[0], *map(int, rest[1:]))
    print(json.dumps(answer))
