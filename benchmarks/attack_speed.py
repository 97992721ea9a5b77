"""How long attacks take: all of them on a 20-round transcript of FB15k-237, and the memory of SI over all pairs.

The federation is a run directory that is trained once (TransE, three clients, 1,000 canaries, every fifth round
recorded); only the attacks are timed. SI's clustering runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.report import call_module, load_average, peak_memory, save, show
from fedkge.api.training import open_run, resume, start
from fedkge.attacks.si_published import SIPublished
from fedkge.base.machine import available_cores
from fedkge.cli.attack_run import attack_progress
from fedkge.defences import parse
from fedkge.experiments.attacking.active import CIA_ATTACKS
from fedkge.experiments.experiment import AttackPlan, fitting_attacks, run_attacks
from fedkge.models import ModelShape, make_scorer
from fedkge.runs.directory import RunDirectory
from fedkge.runs.run import Run
from paper.cells import Key
from paper.grid import digest_of
from paper.settings import Settings, default_folder

REQUIRED_SECONDS = 300.0
REQUIRED_BYTES = 2e9
ENTITIES, DIMENSION, RELATIONS = 7_000, 128, 237


def federation(runs: Path) -> Run:
    """The attacked federation, trained if it is not there."""
    undefended = Key("fb15k-237", "transe", "published", "none", 0.0, 11)
    options = {**Settings(default_folder()).options(undefended), "record": "every:5"}
    configuration = parse(options)
    out = runs / f"attack-speed-{digest_of(options)}"
    if (out / "model.safetensors").exists():
        return open_run(out)
    return resume(out) if RunDirectory(out).exists() else start(configuration, None, out)


def time_attacks(run: Run, cores: int) -> dict[str, float]:
    """Wall-clock and CPU-seconds of passive attacks and of CIA: 1,000 canaries, every fifth round."""
    names = fitting_attacks(run)
    seconds: dict[str, float] = {}
    for kind, chosen in (
        ("passive", tuple(name for name in names if name not in CIA_ATTACKS)),
        ("cia", tuple(name for name in names if name in CIA_ATTACKS)),
    ):
        wall, work = time.perf_counter(), time.process_time()
        with attack_progress() as progress:
            run_attacks(run, AttackPlan(attacks=chosen, designs=("C",), threads=cores), progress)
        seconds[f"{kind}_seconds"] = round(time.perf_counter() - wall, 1)
        seconds[f"{kind}_cpu_seconds"] = round(time.process_time() - work, 1)
    seconds["all_seconds"] = round(seconds["passive_seconds"] + seconds["cia_seconds"], 1)
    seconds["all_cpu_seconds"] = round(seconds["passive_cpu_seconds"] + seconds["cia_cpu_seconds"], 1)
    return seconds


def cluster(model: str) -> dict[str, float]:
    """SI as published over all ordered pairs of 7,000 entities: seconds and peak bytes of this process."""
    scorer = make_scorer(model, ModelShape(DIMENSION))
    width = scorer.entity_width(DIMENSION)
    entities = np.random.default_rng(0).normal(size=(ENTITIES, width)).astype(np.float32)
    began = time.perf_counter()
    SIPublished(heads=ENTITIES).cluster(scorer, entities, 2 * RELATIONS)
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 1), "peak_bytes": peak_memory()}


def main(arguments: list[str]) -> int:
    """Time the attacks and measure the clustering; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks attack_speed", description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories are kept")
    options = parser.parse_args(arguments)
    run, cores, load = federation(options.runs), available_cores(), load_average()
    seconds = time_attacks(run, cores)
    memory = {model: call_module("benchmarks.attack_speed", model) for model in ("transe", "rotate")}
    met = {
        "seconds": seconds["all_seconds"] <= REQUIRED_SECONDS,
        "memory": all(measured["peak_bytes"] <= REQUIRED_BYTES for measured in memory.values()),
    }
    save("attack_speed", {"cores_used": cores, "load_before": load, **seconds, "si_published": memory, "met": met})
    title = f"All attacks, 20 rounds of FB15k-237, 1,000 targets, TransE, {cores} core(s), load {load} before"
    rows = [
        [kind, *(f"{seconds[f'{kind}{unit}']:.0f}" for unit in ("_seconds", "_cpu_seconds"))]
        for kind in ("passive", "cia", "all")
    ]
    show(f"{title}; required: {REQUIRED_SECONDS:.0f} s", ["attacks", "seconds", "CPU-seconds"], rows)
    rows = [[model, f"{one['seconds']:.0f}", f"{one['peak_bytes'] / 1e9:.2f} GB"] for model, one in memory.items()]
    show("SI as published, pairs of 7,000 entities; required: 2 GB", ["model", "seconds", "peak memory"], rows)
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    print(json.dumps(cluster(sys.argv[1])))
