"""How well do the models rank? Central training, and federated against isolated and pooled, on FB15k-237.

Every run goes through `fedkge.api.training` into a run directory, so an interrupted benchmark goes on where it stopped;
one JSON file per run is kept in `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fedkge import __version__
from fedkge.api.training import resume, start
from fedkge.configuration import parse
from fedkge.federation.observer import Observer
from fedkge.models import MODELS
from fedkge.runs.run import RunDirectory

HERE = Path(__file__).parent.parent
STRATEGIES = {"central": ("fede",), "federated": ("fede", "isolated", "pooled")}
CONTROLS = ("popularity", "popularity, epsilon 1")
SHOWN = ("tail.realistic.mrr", "head.realistic.mrr", "both.realistic.mrr", "both.realistic.hits_at_10")


class Log(Observer):
    """One line per evaluation."""

    def evaluated(self, record: Any) -> None:
        print(
            f"  round {record['round']:3d} {record['split']}: both MRR {record['both.realistic.mrr']:.4f}", flush=True
        )

    end = evaluated


def run_one(kind: str, model: str, strategy: str, runs: Path) -> dict[str, Any]:
    """Train (or finish, or just read) one cell and write its JSON."""
    settings = tomllib.loads((HERE / "configurations" / f"{kind}.toml").read_text())
    configuration = parse({**settings["common"], **settings[model], "model": model, "strategy": strategy})
    out = runs / f"{kind}-{model}-{strategy}-{configuration.digest}"
    directory = RunDirectory(out)
    began = time.perf_counter()
    run = resume(out, observer=Log()) if directory.exists() else start(configuration, None, out, observer=Log())
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
        "kind": kind,
        "model": model,
        "strategy": strategy,
        "command": f"python -m benchmarks utility {kind} --model {model} --strategy {strategy}",
        "version": __version__,
        "seconds_of_this_call": round(time.perf_counter() - began, 1),
        "configuration": configuration.as_options(),
        "required_both_mrr": settings.get("required", {}).get(model),
        "test": {key: value for key, value in final.items() if key != "clients"},
        "clients": {
            name: {key: value for key, value in client.items() if key != "controls"}
            for name, client in final["clients"].items()
        },
        "controls": controls,
        "validation": [{"round": r["round"], **{k: r[k] for k in SHOWN}} for r in run.metrics[:-1]],
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / f"{kind}-{model}-{strategy}.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def show(kind: str) -> bool:
    """Print all cells that are there; True when every requirement of them is met."""
    table = Table(title=f"FB15k-237, {kind}: filtered MRR on test", show_lines=False)
    for column in ("model", "strategy", "tail", "head", "both", "both Hits@10", "required"):
        table.add_column(column, justify="left" if column in ("model", "strategy") else "right")
    met = True
    for path in sorted((HERE / "results").glob(f"{kind}-*.json")):
        result = json.loads(path.read_text())
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
    parser.add_argument("--show", action="store_true", help="only print what is there")
    options = parser.parse_args(arguments)
    if not options.show:
        for model in options.model or MODELS:
            for strategy in options.strategy or STRATEGIES[kind]:
                print(f"{kind} {model} {strategy}", flush=True)
                run_one(kind, model, strategy, options.runs)
    return 0 if show(kind) else 1
