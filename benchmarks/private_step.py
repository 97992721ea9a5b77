"""A private step on tables of the size of FB15k-237, against the same step without privacy and against Opacus.

CPU-seconds of one process on one thread; all take turns within the run, medians are compared. Noise comes from the
operating system, as in a real run. A step without privacy samples nothing, clips nothing and adds no noise; the private
one does, with as many public negatives. Its cost depends on the rows that its selection releases, which is printed.

As a program (`python -m benchmarks.private_step memory`) it prints what private steps add to the memory of a process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.report import call_module, load_average, memory_now, peak_memory, reset_peak, save, show, spread
from benchmarks.work import BATCH, DATA, DIMENSION, NEGATIVES, fresh_embedding, make_trainer
from fedkge.defences.noisy_steps.private_training import PrivateTrainer
from fedkge.graph import Graph
from fedkge.graph.datasets import load
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms import Adafest, Clip, Dense, Fest, NoiseSource, Ptr, PublicNegatives, StepPlan
from fedkge.mechanisms.selection import Selection
from fedkge.models.tables import Ids

MODELS = ("transe", "rotate", "distmult", "complex")
CLIP, NOISE, SHARE = Clip(joint=1.2, row=0.8), 1.0, 0.2
GROUP = 64
REQUIRED, OPACUS_SPEED, OPACUS_MEMORY = 1.5, 100.0, 50.0
"""Required: at most so many times the step without privacy; so many times as fast as Opacus; its memory over ours."""


@dataclass(frozen=True)
class Variant:
    """A private step: what selects its rows, and with what optimiser it is compared."""

    select: Callable[[Graph], tuple[Selection, float]]
    optimiser: str = "lazy-adam"
    required: bool = False
    steps: int = 300


def _adafest(threshold: float) -> Callable[[Graph], tuple[Selection, float]]:
    selection, gradient = Adafest.split(NOISE, SHARE)
    return lambda _: (Adafest(selection, threshold), gradient)


def _fest(rows: int) -> Callable[[Graph], tuple[Selection, float]]:
    return lambda graph: (Fest(np.linspace(0, len(graph.entities) - 1, rows).astype(np.int32)), NOISE)


VARIANTS = {
    "ptr": Variant(lambda _: (Ptr(CLIP, BATCH), NOISE), required=True),
    "adafest, threshold 12": Variant(_adafest(12.0), required=True),
    "adafest, threshold 8": Variant(_adafest(8.0), required=True),
    "fest, 128 rows": Variant(_fest(128), required=True),
    "adafest, threshold 2": Variant(_adafest(2.0), steps=60),
    "fest, half of all rows": Variant(_fest(7270), steps=60),
    "dense, sgd (lazy noise)": Variant(lambda _: (Dense(), NOISE), "sgd"),
    "dense, adam": Variant(lambda _: (Dense(), NOISE), "adam", steps=30),
}


class _Counting(PrivateTrainer):
    """Counts the rows that steps release."""

    rows = 0

    def _release(self, rows: Ids, plan: StepPlan, source: NoiseSource) -> None:
        self.rows += len(rows)
        super()._release(rows, plan, source)


class StepBench:
    """All variants of one model, a repeat at a time."""

    def __init__(self, model: str, graph: Graph) -> None:
        self._graph, self._generator, self._source = graph, np.random.default_rng(1), NoiseSource.secret()
        self._plain = {
            name: make_trainer(fresh_embedding(model, graph), GROUP, name)
            for name in {variant.optimiser for variant in VARIANTS.values()}
        }
        self._private = {name: private_trainer(model, graph, variant) for name, variant in VARIANTS.items()}
        self._plans = {name: plan_of(graph, variant) for name, variant in VARIANTS.items()}
        self.rows: dict[str, float] = {}
        self.seen: dict[str, list[float]] = defaultdict(list)
        for name, variant in VARIANTS.items():
            trainer = self._private[name]
            trainer.train(self._plans[name], 20, self._source, self._generator)
            self.rows[name] = trainer.rows / 20 if variant.optimiser != "sgd" else len(graph.entities)
            self._plain_seconds(variant, 20)

    def _plain_seconds(self, variant: Variant, steps: int) -> float:
        triples = self._graph.train[self._generator.choice(len(self._graph.train), steps * BATCH, replace=False)]
        began = time.process_time()
        self._plain[variant.optimiser].epoch(triples, self._generator)
        return (time.process_time() - began) / steps

    def repeat(self) -> None:
        """Each variant in turn with the step without privacy, short turns so that both see the same machine."""
        for name, variant in VARIANTS.items():
            for _ in range(3):
                self.seen[f"{name}: plain"].append(self._plain_seconds(variant, variant.steps // 3))
                began = time.process_time()
                self._private[name].train(self._plans[name], variant.steps // 3, self._source, self._generator)
                self.seen[name].append((time.process_time() - began) / (variant.steps // 3))

    def result(self) -> dict[str, Any]:
        """Microseconds per step, rows released, and ratios."""
        return {name: self._result(name) for name in VARIANTS}

    def _result(self, name: str) -> dict[str, Any]:
        private, plain = self.seen[name], self.seen[f"{name}: plain"]
        return {
            "optimiser": VARIANTS[name].optimiser,
            "rows": round(self.rows[name], 1),
            "private_microseconds": spread([1e6 * seconds for seconds in private]),
            "plain_microseconds": spread([1e6 * seconds for seconds in plain]),
            "ratio": median(private) / median(plain),
            "ratio_of_minima": min(private) / min(plain),
            "required": REQUIRED if VARIANTS[name].required else None,
        }


def private_trainer(model: str, graph: Graph, variant: Variant) -> _Counting:
    """A trainer whose positives are private and whose negatives are public."""
    trainer = make_trainer(fresh_embedding(model, graph), GROUP, variant.optimiser)
    return _Counting(trainer, graph.train, PublicNegatives(len(graph.entities), len(graph.relations)))


def plan_of(graph: Graph, variant: Variant) -> StepPlan:
    """The paper's clips and noise of 1."""
    selection, gradient = variant.select(graph)
    return StepPlan(BATCH, len(graph.train), CLIP, gradient, selection)


class OpacusBench:
    """Opacus and two of our steps, in turns: dense noise, which is the same mechanism, and selected rows."""

    NAMES = ("dense, sgd (lazy noise)", "adafest, threshold 8")

    def __init__(self, graph: Graph) -> None:
        from benchmarks.opacus_peer import OpacusStep  # noqa: PLC0415 (heavy, and an extra)

        self._opacus, self._source, self._generator = OpacusStep(), NoiseSource.secret(), np.random.default_rng(1)
        self._ours = {
            name: (private_trainer("transe", graph, VARIANTS[name]), plan_of(graph, VARIANTS[name]))
            for name in self.NAMES
        }
        self.seen: dict[str, list[float]] = defaultdict(list)
        self._opacus.step()
        for trainer, plan in self._ours.values():
            trainer.train(plan, 20, self._source, self._generator)

    def repeat(self) -> None:
        """One step of Opacus, a hundred of each of ours with what the round's end costs."""
        self.seen["opacus"].append(self._opacus.step())
        for name, (trainer, plan) in self._ours.items():
            began = time.process_time()
            trainer.train(plan, 100, self._source, self._generator)
            self.seen[name].append((time.process_time() - began) / 100)

    def result(self) -> dict[str, Any]:
        """Seconds, ratios, and memory from processes of their own."""
        theirs = median(self.seen["opacus"])
        memory = {name: call_module("benchmarks.private_step", "memory", name) for name in self.NAMES}
        memory["opacus"] = call_module("benchmarks.opacus_peer")
        return {
            "milliseconds": {name: spread([1e3 * value for value in values]) for name, values in self.seen.items()},
            "memory": memory,
            "times_as_fast": {name: theirs / median(self.seen[name]) for name in self.NAMES},
            "less_memory": {name: memory["opacus"]["added_bytes"] / memory[name]["added_bytes"] for name in self.NAMES},
        }


def added_memory(name: str) -> dict[str, int]:
    """Bytes that private steps need beyond tables, optimiser and triples, and the peak of the whole process."""
    graph, variant, source = load(DATA), VARIANTS[name], NoiseSource.secret()
    small = synthetic_graph(entities=200, relations=4, triples=500, seed=1)  # so that all is loaded and compiled
    private_trainer("transe", small, variant).train(plan_of(small, variant), 2, source, np.random.default_rng(0))
    trainer = private_trainer("transe", graph, variant)
    plan = plan_of(graph, variant)
    reset_peak()
    before = memory_now()
    trainer.train(plan, 200, source, np.random.default_rng(0))
    assert "torch" not in sys.modules
    return {"added_bytes": max(1, peak_memory() - before), "peak_bytes": peak_memory()}


def main(arguments: list[str]) -> int:
    """Measure, print, save; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks private_step", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-save", action="store_true", help="do not write results/private_step.json")
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    graph = load(DATA)
    with threadpool_limits(limits=1):
        benches = {model: StepBench(model, graph) for model in options.models}
        for number in range(options.repeats):
            for model, bench in benches.items():
                Console(stderr=True).print(f"repeat {number + 1} of {options.repeats}: {model}, load {load_average()}")
                bench.repeat()
        opacus = _against_opacus(graph, options.repeats)
    results = {model: bench.result() for model, bench in benches.items()}
    missed = report(results, opacus)
    if not options.no_save:
        setting = {"data": DATA, "dimension": DIMENSION, "negatives": NEGATIVES, "group": GROUP, "batch": BATCH}
        print(f"saved to {save('private_step', {**setting, 'models': results, 'opacus': opacus, 'missed': missed})}")
    print("\n".join(f"missed: {miss}" for miss in missed) or "all requirements are met")
    return 1 if missed else 0


def _against_opacus(graph: Graph, repeats: int) -> dict[str, Any]:
    try:
        bench = OpacusBench(graph)
    except ImportError as error:
        return {"skipped": f"{error}: pip install 'fedkge[bench]'"}
    for _ in range(repeats):
        bench.repeat()
    return bench.result()


def report(results: dict[str, Any], opacus: dict[str, Any]) -> list[str]:
    """Print both tables; returns what was missed."""
    missed = []
    for model, result in results.items():
        rows = []
        for name, facts in result.items():
            bound = facts["required"]
            good = bound is None or facts["ratio"] <= bound
            rows.append(
                (
                    name,
                    f"{facts['rows']:,.0f}",
                    f"{facts['plain_microseconds']['median']:,.0f}",
                    f"{facts['private_microseconds']['median']:,.0f}",
                    f"{facts['ratio']:.2f}",
                    f"{facts['ratio_of_minima']:.2f}",
                    "-" if bound is None else f"{'≤' if good else '[bold red]>[/]'} {bound:g}",
                )
            )
            if not good:
                missed.append(f"{model}, {name}: {facts['ratio']:.2f} times of {bound:g}")
        columns = ("private step", "rows released", "without privacy", "private", "ratio", "of minima", "required")
        show(f"{model}: CPU-microseconds per step of {BATCH} triples, medians", columns, rows)
    if "skipped" in opacus:
        print(f"Opacus was skipped: {opacus['skipped']}")
        return missed
    for name, faster in opacus["times_as_fast"].items():
        less, memory = opacus["less_memory"][name], opacus["memory"]
        print(
            f"{name}: {faster:,.0f} times as fast as Opacus (required {OPACUS_SPEED:g}); a step adds "
            f"{memory[name]['added_bytes'] / 1e6:.1f} MB, with Opacus {memory['opacus']['added_bytes'] / 1e6:,.0f} MB: "
            f"{less:,.0f} times less (required {OPACUS_MEMORY:g})"
        )
        missed += [f"{name}: {faster:.0f} times as fast as Opacus"] if faster < OPACUS_SPEED else []
        missed += [f"{name}: {less:.0f} times less memory than Opacus"] if less < OPACUS_MEMORY else []
    return missed


if __name__ == "__main__":
    print(json.dumps(added_memory(sys.argv[2])))
