"""Training and ranking on FB15k-237, one thread, against PyKEEN in the same run.

Rates count CPU-seconds of this process, so that other work on the machine disturbs little; fedkge and PyKEEN take
turns, and medians of the repeats are compared.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.report import call_module, load_average, save, show, spread, verdict
from benchmarks.work import BATCH, DATA, DIMENSION, NEGATIVES, fresh_embedding, make_trainer, rank_seconds, train_rate
from fedkge.graph import Graph
from fedkge.graph.datasets import load

MODELS = ("transe", "rotate", "distmult", "complex")
GROUPS = {1: 150, 16: 600, 64: 1200}
"""Triples that share negatives, and how many batches one measurement trains."""
PEER_BATCHES = 30
PEER_RANK_BATCHES = (1, 8, 32)
"""Batch sizes that PyKEEN's evaluator is tried with; the fastest one is measured (its own choice on a CPU is 32)."""
INDEPENDENT, SHARED, RANKING, MEMORY = 6.0, 40.0, 30.0, 600e6
"""Required: how many times as fast as PyKEEN, and bytes."""

Measurements = dict[str, list[float]]


class ModelBench:
    """Everything that is measured for one model, one repeat at a time."""

    def __init__(self, model: str, graph: Graph, peer_triples: int) -> None:
        from benchmarks import peer  # noqa: PLC0415 (torch must be held at one thread first)

        self.model, self.graph, self.peer, self.peer_triples = model, graph, peer, peer_triples
        self.embedding = fresh_embedding(model, graph)
        self.generator = np.random.default_rng(1)
        self.trainers = {group: make_trainer(fresh_embedding(model, graph), group) for group in GROUPS}
        self.seen: Measurements = defaultdict(list)
        self.agreement = 0.0
        self._warm_up()

    def _warm_up(self) -> None:
        for trainer in self.trainers.values():
            train_rate(trainer, self.graph.train, 20, self.generator)
        # A little training, so that the ranks compared are those of a model and not of noise.
        train_rate(make_trainer(self.embedding, 64), self.graph.train, 1000, self.generator)
        rank_seconds(self.embedding, self.graph, 64)
        self.peer_model = self.peer.as_pykeen(self.embedding, self.peer.to_pykeen(self.graph)["train"])
        seconds = {size: self._peer_rank(32, size)[0] for size in PEER_RANK_BATCHES}
        self.peer_batch = min(seconds, key=seconds.__getitem__)

    def _peer_rank(self, count: int, batch_size: int) -> tuple[float, dict[str, float]]:
        return self.peer.evaluate(self.peer_model, self.graph.test[:count], self.graph.all_triples, batch_size)

    def repeat(self) -> None:
        """Measure each thing once, PyKEEN and fedkge in turns."""
        for name, make_model in (("pykeen", self.peer.as_pykeen), ("pykeen defaults", self.peer.defaults)):
            rate = self.peer.train_rate(make_model, self.graph, self.embedding, batches=PEER_BATCHES)
            self.seen[f"train {name}"].append(rate)
            for group, batches in GROUPS.items():
                if name == "pykeen":
                    rate = train_rate(self.trainers[group], self.graph.train, batches, self.generator)
                    self.seen[f"train group {group}"].append(rate)
        theirs, their_metrics = self._peer_rank(self.peer_triples, self.peer_batch)
        ours, our_metrics = rank_seconds(self.embedding, self.graph, self.peer_triples)
        self.seen["rank pykeen 1024"].append(theirs * 1024 / self.peer_triples)
        self.seen["rank 1024"].append(ours * 1024 / self.peer_triples)
        if not self.seen["rank all"]:  # long and only for information: once is enough
            self.seen["rank all"].append(rank_seconds(self.embedding, self.graph, len(self.graph.test))[0])
        self.agreement = abs(their_metrics["both.realistic.mrr"] - our_metrics["both.realistic.mrr"])

    def result(self) -> dict[str, Any]:
        """All repeats, and the ratios of their medians."""
        middle = {name: median(values) for name, values in self.seen.items()}
        return {
            **{name: spread(values) for name, values in self.seen.items()},
            "ratios": {
                "independent": middle["train group 1"] / middle["train pykeen"],
                "group 16": middle["train group 16"] / middle["train pykeen"],
                "group 64": middle["train group 64"] / middle["train pykeen"],
                "independent, pykeen defaults": middle["train group 1"] / middle["train pykeen defaults"],
                "group 64, pykeen defaults": middle["train group 64"] / middle["train pykeen defaults"],
                "ranking": middle["rank pykeen 1024"] / middle["rank 1024"],
                "ranking, all test triples": middle["rank pykeen 1024"]
                / (middle["rank all"] * 1024 / len(self.graph.test)),
            },
            "peer_ranking_batch": self.peer_batch,
            "mrr_difference": self.agreement,
        }


def main(arguments: list[str]) -> int:
    """Measure, print, save; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks speed", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peer-triples", type=int, default=1024, help="test triples that both sides rank")
    parser.add_argument("--no-save", action="store_true", help="do not write results/speed.json")
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    with threadpool_limits(limits=1):
        import torch  # noqa: PLC0415 (heavy, and an extra)

        torch.set_num_threads(1)
        graph = load(DATA)
        benches = {model: ModelBench(model, graph, options.peer_triples) for model in options.models}
        for number in range(options.repeats):
            for model, bench in benches.items():
                Console(stderr=True).print(f"repeat {number + 1} of {options.repeats}: {model}, load {load_average()}")
                bench.repeat()
    results = {model: bench.result() for model, bench in benches.items()}
    memory = {model: _memory(model) for model in options.models}
    missed = report(results, memory)
    if not options.no_save:
        setting = {"data": DATA, "dimension": DIMENSION, "negatives": NEGATIVES, "batch": BATCH, "threads": 1}
        path = save("speed", {"setting": setting, "models": results, "memory_bytes": memory, "missed": missed})
        print(f"saved to {path}")
    print("\n".join(f"missed: {miss}" for miss in missed) or "all requirements are met")
    return 1 if missed else 0


def _memory(model: str) -> int:
    peaks = [call_module("benchmarks.work", model, str(group)) for group in (1, 64)]
    assert not any(peak["torch_loaded"] for peak in peaks)
    return max(peak["peak_bytes"] for peak in peaks)


def report(results: dict[str, Any], memory: dict[str, int]) -> list[str]:
    """Print both tables; returns what was missed."""
    show(
        f"Training {DATA}: triples per CPU-second, medians; ratios are to PyKEEN",
        (
            "model",
            "PyKEEN, defaults",
            "PyKEEN",
            "independent",
            "group 16",
            "group 64",
            "indep.",
            "shared 64",
            "peak MB",
        ),
        [_training_row(model, result, memory[model]) for model, result in results.items()],
    )
    show(
        "Filtered ranking, both sides: CPU-seconds, medians",
        ("model", "PyKEEN, 1,024", "fedkge, 1,024", "fedkge, all", "ratio (1,024)", "ratio (all)", "MRR differs by"),
        [_ranking_row(model, result) for model, result in results.items()],
    )
    required = {"independent": INDEPENDENT, "group 64": SHARED, "ranking": RANKING}
    missed = [
        f"{model} {name}: {result['ratios'][name]:.1f}x of {least:g}x"
        for model, result in results.items()
        for name, least in required.items()
        if result["ratios"][name] < least
    ]
    return missed + [f"{model} peak memory: {peak / 1e6:.0f} MB" for model, peak in memory.items() if peak > MEMORY]


def _training_row(model: str, result: dict[str, Any], memory: int) -> tuple[str, ...]:
    names = ("train pykeen defaults", "train pykeen", "train group 1", "train group 16", "train group 64")
    return (
        model,
        *(f"{result[name]['median']:,.0f}" for name in names),
        verdict(result["ratios"]["independent"], INDEPENDENT),
        verdict(result["ratios"]["group 64"], SHARED),
        f"{memory / 1e6:.0f} of {MEMORY / 1e6:.0f}",
    )


def _ranking_row(model: str, result: dict[str, Any]) -> tuple[str, ...]:
    return (
        model,
        *(f"{result[name]['median']:.2f}" for name in ("rank pykeen 1024", "rank 1024", "rank all")),
        verdict(result["ratios"]["ranking"], RANKING),
        f"{result['ratios']['ranking, all test triples']:.0f}x",
        f"{result['mrr_difference']:.1e}",
    )
