"""How often the paper's propose-test-release test passes on FB15k-237 at the paper's parameters.

Three clients by entity, TransE, batch 64, sigma = sigma_r = sigma_p = 1, C1 1.2, C2 0.8, public negatives; the test as
printed (`ptr-published`) and with sound constants (`ptr`). The failure probability delta_t is tried in two ways: the
whole delta of 1e-5 in every step, which is the easiest test that can be asked for, and the delta halved between the
release and all tests of a client. A step whose test fails releases no entity row. The paper trains with this test and
prints no pass rate.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from scipy.stats import norm

from benchmarks.report import save, show
from fedkge.configuration import Configuration
from fedkge.defences import parse
from fedkge.federation.training import Federation
from fedkge.graph.datasets import load
from fedkge.graph.split import split

DATA, CLIENTS, DELTA, STEPS = "fb15k-237", 3, 1e-5, 600
LEAST_TESTS = 5000


def configuration_of(selection: str, rounds: int, failure: float) -> Configuration:
    """The paper's structure and parameters."""
    size = {"dimension": 128, "batch_size": 64, "local_steps": STEPS, "rounds": rounds}
    noise = {"noise": 1.0, "clip": 1.2, "row_clip": 0.8, "delta": DELTA, "test_failure": failure}
    structure = {"defence": "dp-flames", "selection": selection, "private_negatives": "public"}
    rest = {"data": DATA, "model": "transe", "clients": CLIENTS, "evaluate_every": 0, "seed": 1}
    return parse({**size, **noise, **structure, **rest})


def chance(selection: str, failure: float) -> float:
    """How probable it is that the test passes by its noise alone, where there is no gap."""
    return failure if selection == "ptr" else float(norm.sf(math.sqrt(2 * math.log(1 / failure))))


def measure(selection: str, rounds: int, failure: float) -> dict[str, Any]:
    """Train, and count the tests."""
    shards = split(load(DATA), clients=CLIENTS, by="entity", seed=1)
    federation = Federation(shards.graphs, configuration_of(selection, rounds, failure))
    for _ in range(rounds):
        federation.server.run_round()
    tests = {name: client.tests for name, client in federation.clients.items()}
    made, passed = (sum(counts[what] for counts in tests.values()) for what in ("made", "passed"))
    return {
        "selection": selection,
        "test_failure": failure,
        "made": made,
        "passed": passed,
        "rate": passed / made,
        "chance_without_a_gap": chance(selection, failure),
        "clients": tests,
    }


def main(arguments: list[str]) -> int:
    """Measure, print, save; 1 if there were too few tests to speak of a rate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pass_rate", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help=f"of {STEPS} steps per client each")
    parser.add_argument("--no-save", action="store_true", help="do not write results/pass_rate.json")
    options = parser.parse_args(arguments)
    shared = DELTA / 2 / (STEPS * options.rounds)
    results = [
        measure(selection, options.rounds, failure)
        for selection in ("ptr-published", "ptr")
        for failure in (DELTA, shared)
    ]
    show(
        f"Tests that passed: {DATA}, {CLIENTS} clients, TransE, batch 64, noise 1, C1 1.2, C2 0.8",
        ("selection", "delta_t", "tests", "passed", "chance without a gap", "the paper"),
        [
            (
                result["selection"],
                f"{result['test_failure']:.1e}",
                f"{result['made']:,}",
                f"{result['passed']:,}",
                f"{result['chance_without_a_gap']:.1e}",
                "trains with it",
            )
            for result in results
        ],
    )
    if not options.no_save:
        paper = "trains with the test and reports utility; prints no pass rate"
        print(f"saved to {save('pass_rate', {'paper': paper, 'delta': DELTA, 'results': results})}")
    return 0 if all(result["made"] >= LEAST_TESTS for result in results) else 1
