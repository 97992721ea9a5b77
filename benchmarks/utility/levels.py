"""How well do the models rank? Central training, and federated against isolated and pooled, on FB15k-237.

Every run has a run directory, so an interrupted benchmark goes on where it stopped; one JSON file per run is kept in
`benchmarks/results/`, and a run that is there is not measured again.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fedkge import __version__
from fedkge.api.training import resume, start
from fedkge.defences import parse
from fedkge.models import MODELS
from fedkge.runs.directory import RunDirectory
from paper.grid import Files, Task, Tell, digest_of, watch_grid
from paper.watching import Rounds

HERE = Path(__file__).parent.parent
STRATEGIES = {"central": ("fede",), "federated": ("fede", "isolated", "pooled")}
CONTROLS = ("popularity", "popularity, epsilon 1")
SHOWN = ("tail.realistic.mrr", "head.realistic.mrr", "both.realistic.mrr", "both.realistic.hits_at_10")


def settings_of(kind: str) -> dict[str, Any]:
    """What is written about one comparison."""
    return tomllib.loads((HERE / "configurations" / f"{kind}.toml").read_text())


def options_of(kind: str, model: str, strategy: str) -> dict[str, Any]:
    """The options of one cell."""
    settings = settings_of(kind)
    return {**settings["common"], **settings[model], "model": model, "strategy": strategy}


def store_of(kind: str) -> Files:
    """The cells of one comparison."""
    return Files(HERE / "results", f"{kind}-*")


def measure(kind: str, model: str, strategy: str, runs: Path, tell: Tell) -> None:
    """Train (or finish, or just read) one cell and keep it."""
    options = options_of(kind, model, strategy)
    out = runs / f"{kind}-{model}-{strategy}-{digest_of(options)}"
    began, observer = time.perf_counter(), Rounds(tell)
    if RunDirectory(out).exists():
        run = resume(out, observer=observer, threads=1)
    else:
        run = start(parse({**options, "threads": 1}), None, out, observer=observer)
    final = run.metrics[-1]
    total = sum(client["triples"] for client in final["clients"].values())
    controls = {
        control: {
            key: sum(c["triples"] * c["controls"][control][key] for c in final["clients"].values()) / total
            for key in SHOWN
        }
        for control in CONTROLS
    }
    result = {
        "digest": digest_of(options),
        "kind": kind,
        "model": model,
        "strategy": strategy,
        "command": f"python -m benchmarks utility {kind} --model {model} --strategy {strategy}",
        "version": __version__,
        "seconds_of_this_call": round(time.perf_counter() - began, 1),
        "configuration": run.configuration.updated(threads=0).as_options(),
        "required_both_mrr": settings_of(kind).get("required", {}).get(model),
        "test": {key: value for key, value in final.items() if key != "clients"},
        "clients": {
            name: {key: value for key, value in client.items() if key != "controls"}
            for name, client in final["clients"].items()
        },
        "controls": controls,
        "validation": [{"round": r["round"], **{k: r[k] for k in SHOWN}} for r in run.metrics[:-1]],
    }
    store_of(kind).add(f"{kind}-{model}-{strategy}", result)


def show(kind: str) -> bool:
    """Print all cells that are there; True when every requirement of them is met."""
    table = Table(title=f"FB15k-237, {kind}: filtered MRR on test", show_lines=False)
    for column in ("model", "strategy", "tail", "head", "both", "both Hits@10", "required"):
        table.add_column(column, justify="left" if column in ("model", "strategy") else "right")
    met = True
    for result in store_of(kind).cells():
        required = result["required_both_mrr"]
        met &= required is None or result["test"]["both.realistic.mrr"] >= required
        rows = {result["strategy"]: result["test"], **result["controls"]}
        for name, metrics in rows.items():
            numbers = [f"{metrics[key]:.4f}" for key in SHOWN]
            needed = f">= {required}" if required and name == result["strategy"] else ""
            table.add_row(result["model"], name, *numbers, needed)
    Console(width=110).print(table)
    return met


def main(kind: str, arguments: list[str]) -> int:
    """Run the cells that are asked for, then print the table."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks utility {kind}", description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), action="append")
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories are kept")
    parser.add_argument("--workers", type=int, default=0, help="cells at a time; 0: one per core")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    options = parser.parse_args(arguments)
    tasks = []
    for model in () if options.show else options.model or MODELS:
        for strategy in options.strategy or STRATEGIES[kind]:
            name = f"{kind}-{model}-{strategy}"
            if not store_of(kind).has(name, digest_of(options_of(kind, model, strategy))):
                tasks.append(Task(name, partial(measure, kind, model, strategy, options.runs)))
    grid = watch_grid(tasks, options.workers)
    for name, reason in grid.failed.items():
        print(f"{name} failed: {reason}", file=sys.stderr)
    return 0 if show(kind) and not grid.failed else 1
