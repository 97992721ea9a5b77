"""How much of a real graph a noisy copy holds: what is estimated from released values, beside the truth.

Each graph is one client with the options that `--epsilon` alone chooses. The copy is what its first round trains on,
before any model has an opinion. `believed` are the answers that are more likely true than false; `share` is the part of
the client's triples among them, `precision` the part of them that the client really holds. The estimates use the copy
and the public number of triples alone (`NoisyCopy.holding`). Only the owner could compute the truth.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.report import save, show
from fedkge.accounting.ledger import Ledger
from fedkge.defences import parse
from fedkge.defences.noisy_copy import NoisyCopy
from fedkge.defences.noisy_copy.client import ClientCopy
from fedkge.defences.noisy_copy.noisy_copy import cells_of
from fedkge.defences.planning import client_defence
from fedkge.graph import Graph
from fedkge.graph.datasets import load
from fedkge.mechanisms.noise import NoiseSource

GRAPHS = ("codex-s", "fb15k-237")
EPSILONS = (2.0, 4.0, 4.9, 5.0, 8.0, 16.0)
SEEDS = (1, 2, 3)


def measure(graph: Graph, epsilon: float, seed: int) -> dict[str, Any]:
    """Draw one copy, estimate, and compare with the triples themselves."""
    budget = {"defence": "recommended", "epsilon": epsilon, "noise_seed": seed}
    options = parse({"data": graph.name, "clients": 1, **budget})
    defence = client_defence(options, graph.name, graph, Ledger.in_memory())
    if not isinstance(defence, ClientCopy):
        raise TypeError(f"expected a defence that copies at epsilon {epsilon}, got {defence}")
    sizes = len(graph.entities), len(graph.relations)
    copy = NoisyCopy.draw(graph.train, *sizes, defence.copy, NoiseSource.research(seed))
    estimated = copy.holding(defence.triples)
    held = np.unique(cells_of(graph.train, copy.entities))
    true = int(np.isin(cells_of(copy.believed(), copy.entities), held).sum())
    return {
        "graph": graph.name,
        "epsilon": epsilon,
        "seed": seed,
        "triples": len(held),
        "public_triples": defence.triples,
        "answered_yes": len(copy.cells),
        "believed": estimated.believed,
        "share": true / len(held),
        "precision": true / estimated.believed if estimated.believed else None,
        "estimated_share": estimated.share,
        "estimated_precision": estimated.precision,
    }


def main(arguments: list[str]) -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks holds", description=__doc__)
    parser.add_argument("--graph", action="append", help=f"default {', '.join(GRAPHS)}")
    parser.add_argument("--no-save", action="store_true", help="do not write results/holds.json")
    options = parser.parse_args(arguments)
    results = []
    for name in options.graph or GRAPHS:
        graph = load(name)
        results += [measure(graph, epsilon, seed) for epsilon in EPSILONS for seed in SEEDS]
    show(
        "What a noisy copy holds (in brackets: estimated from released values)",
        ("graph", "epsilon", "seed", "believed", "share of the triples", "precision"),
        [
            (
                result["graph"],
                f"{result['epsilon']:g}",
                str(result["seed"]),
                f"{result['believed']:,}",
                f"{result['share']:.3f} ({result['estimated_share']:.3f})",
                _pair(result["precision"], result["estimated_precision"]),
            )
            for result in results
        ],
    )
    if not options.no_save:
        print(f"saved to {save('holds', {'results': results})}")
    return 0


def _pair(true: float | None, estimated: float | None) -> str:
    return "-" if true is None or estimated is None else f"{true:.3f} ({estimated:.3f})"
