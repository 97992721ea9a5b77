"""A federation of three clients on two cores against one core, on the same work: wall-clock time of rounds.

Both federations are built beforehand and take turns; every pair of measurements trains the same triples. Work of
others on the machine makes two cores look slower than they are. So each pair waits for a quiet moment (while patience
lasts), the share of the processor that others took is recorded, and pairs that were disturbed are measured again.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.report import load_average, save, show, verdict
from fedkge.defences import parse
from fedkge.federation.training import Federation
from fedkge.graph.datasets import load
from fedkge.graph.split import Shards, split

DATA, CLIENTS, REQUIRED = "fb15k-237", 3, 1.6
MODELS = ("transe", "rotate")
QUIET = 0.1
"""Others may take so many cores while something is measured."""
TICKS = os.sysconf("SC_CLK_TCK")


def federation(model: str, shards: Shards, threads: int, batch_size: int) -> Federation:
    """Three clients that train one epoch per round with shared negatives, without evaluation or disk."""
    configuration = parse(
        {
            "data": DATA,
            "clients": CLIENTS,
            "model": model,
            "rounds": 1000,
            "local_epochs": 1,
            "batch_size": batch_size,
            "evaluate_every": 0,
            "seed": 7,
            "threads": threads,
        }
    )
    return Federation(shards.graphs, configuration)


def busy_elsewhere() -> float:
    """CPU-seconds that the whole machine has used so far, less those of this process."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _idle, _wait, interrupt, soft, steal = map(int, fields)
    return (user + nice + system + interrupt + soft + steal) / TICKS - time.process_time()


def timed_rounds(running: Federation, rounds: int) -> tuple[float, float]:
    """Wall-clock seconds of some rounds, and the cores that others used meanwhile."""
    others, began = busy_elsewhere(), time.perf_counter()
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(rounds):
            running.server.run_round()
    seconds = time.perf_counter() - began
    return seconds, (busy_elsewhere() - others) / seconds


def wait_for_quiet(until: float) -> None:
    """Return when others used next to nothing for a second, or when the clock says `until`."""
    while time.perf_counter() < until:
        others, began = busy_elsewhere(), time.perf_counter()
        time.sleep(1)
        if (busy_elsewhere() - others) / (time.perf_counter() - began) < QUIET:
            return


def measure(
    model: str, shards: Shards, repeats: int, rounds: int, patience_seconds: float, batch_size: int
) -> dict[str, Any]:
    """Pairs of one and two threads in turns, until enough were measured on a quiet machine or patience ends."""
    running = {threads: federation(model, shards, threads, batch_size) for threads in (1, 2)}
    for warm_up in running.values():
        timed_rounds(warm_up, 1)
    until = time.perf_counter() + patience_seconds
    pairs: list[dict[str, Any]] = []
    while len(pairs) < repeats or (sum(pair["quiet"] for pair in pairs) < repeats and time.perf_counter() < until):
        wait_for_quiet(until)
        one, others_one = timed_rounds(running[1], rounds)
        two, others_two = timed_rounds(running[2], rounds)
        others = max(others_one, others_two)
        pairs.append({"one": one, "two": two, "ratio": one / two, "others": others, "load": load_average()})
        pairs[-1]["quiet"] = others < QUIET
        print(f"{model}: {one:.2f} s, {two:.2f} s, {one / two:.2f}x, others {others:.2f} cores", flush=True)
    quiet = [pair for pair in pairs if pair["quiet"]]
    chosen = quiet if len(quiet) >= repeats else sorted(pairs, key=lambda pair: pair["others"])[:repeats]
    triples = rounds * sum(len(shard.train) for shard in shards)
    return {
        "ratio": median(pair["ratio"] for pair in chosen),
        "triples_per_second": {name: triples / median(pair[name] for pair in chosen) for name in ("one", "two")},
        "others": median(pair["others"] for pair in chosen),
        "all_quiet": len(quiet) >= repeats,
        "pairs": pairs,
    }


def main(arguments: list[str]) -> int:
    """Measure, print, save; 1 if two cores give less than required."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks parallel", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1, help="rounds per measurement")
    parser.add_argument("--batch-size", type=int, default=64, help="larger batches spend less time under Python's lock")
    parser.add_argument("--patience", type=float, default=300, help="seconds to wait for quiet moments, per model")
    parser.add_argument("--no-save", action="store_true", help="do not write results/parallel.json")
    options = parser.parse_args(arguments)
    shards = split(load(DATA), CLIENTS, "entity", seed=7)
    results = {
        model: measure(model, shards, options.repeats, options.rounds, options.patience, options.batch_size)
        for model in options.models
    }
    show(
        f"{CLIENTS} clients of {DATA} on two cores against one: triples per second",
        ("model", "one core", "two cores", "ratio", "cores taken by others"),
        [
            (
                model,
                *(f"{rate:,.0f}" for rate in result["triples_per_second"].values()),
                verdict(result["ratio"], REQUIRED),
                f"{result['others']:.2f}",
            )
            for model, result in results.items()
        ],
    )
    if not options.no_save:
        sizes = [len(shard.train) for shard in shards]
        print(f"saved to {save('parallel', {'setting': vars(options), 'train_triples': sizes, 'models': results})}")
    return 1 if any(result["ratio"] < REQUIRED for result in results.values()) else 0
