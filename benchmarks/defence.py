"""What does a defence cost, and what does it stop? Every defence at every budget on FB15k-237, four models.

One cell is one federation: utility on both sides beside the popularity controls, and all attacks on designs B and C.
Cells are kept in `benchmarks/results/defence/` as they come, so an interrupted grid goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
import tomllib
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fedkge import __version__
from fedkge.api.training import open_run, resume, start
from fedkge.base.machine import available_cores
from fedkge.configuration import Configuration, parse
from fedkge.evaluation import weighted_metrics
from fedkge.experiments.experiment import ACTIVE, AttackPlan, Outcome, fitting_attacks, run_attacks
from fedkge.models import MODELS
from fedkge.runs.run import Run, RunDirectory

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "defence"
DEFENCES = ("recommended", "noisy-steps", "dpsgd", "dp-flames", "dp-flames-adaptive")
BUDGETS = (2, 4, 8, 16, 32)
SLOW = ("si-published",)
"""Left out: half a minute per round, and near chance even without a defence (benchmarks/README.md)."""


def settings() -> dict[str, Any]:
    return tomllib.loads((HERE / "configurations" / "defence.toml").read_text())


def configuration_of(model: str, defence: str, epsilon: float) -> Configuration:
    options = settings()
    chosen = {**options["common"], **options.get(defence, {}), **options.get(f"{defence}-{model}", {})}
    budget = {} if defence == "none" else {"defence": defence, "epsilon": float(epsilon)}
    return parse({**chosen, **budget, "model": model})


def cell(model: str, defence: str, epsilon: float, runs: Path, active: bool) -> None:
    """Train, attack, write the JSON; the run directory is removed."""
    path = RESULTS / f"{model}-{defence}-{epsilon:g}.json"
    if path.exists():
        return
    configuration = configuration_of(model, defence, epsilon)
    out = runs / f"defended-{model}-{defence}-{epsilon:g}-{configuration.digest}"
    began = time.perf_counter()
    run = _trained(configuration, out)
    trained = time.perf_counter()
    attacks = [name for name in fitting_attacks(run) if name not in SLOW and (active or name not in ACTIVE)]
    plan = AttackPlan(
        attacks=tuple(attacks), designs=("B", "C"), every=configuration.training.rounds, threads=available_cores()
    )
    outcomes = run_attacks(run, plan)
    record = {
        "data": configuration.data.source,
        "model": model,
        "defence": defence,
        "epsilon": epsilon,
        "command": f"python -m benchmarks defence --model {model} --defence {defence} --epsilon {epsilon:g}",
        "version": __version__,
        "seconds": {"training": round(trained - began, 1), "attacks": round(time.perf_counter() - trained, 1)},
        "configuration": configuration.changed_options(),
        "spent": run.epsilon() if run.ledger else {},
        "noise": {name: promise.facts["noise"] for name, promise in run.ledger.promises.items()} if run.ledger else {},
        "test": {key: value for key, value in run.metrics[-1].items() if ".realistic." in key},
        "controls": _controls(run),
        "outcomes": [_plain(outcome) for outcome in outcomes],
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    shutil.rmtree(out)


def _plain(outcome: Outcome) -> dict[str, Any]:
    """An outcome without its ROC points."""
    metrics = {key: value for key, value in outcome.metrics.items() if key != "roc"}
    return {"attack": outcome.attack, "adversary": outcome.adversary, "design": outcome.design, **metrics}


def _trained(configuration: Configuration, out: Path) -> Run:
    if (out / "model.safetensors").exists():
        return open_run(out)
    return resume(out) if RunDirectory(out).exists() else start(configuration, None, out)


def _controls(run: Run) -> dict[str, dict[str, float]]:
    clients = run.metrics[-1]["clients"].values()
    names = next(iter(clients))["controls"]
    return {name: weighted_metrics([(part["triples"], part["controls"][name]) for part in clients]) for name in names}


def show() -> None:
    """Utility and the strongest attack per cell, beside the paper's own rows."""
    published = settings().get("published", {})
    table = Table(title="FB15k-237, three clients by entity; sound epsilon at delta 1e-5; MRR tail / head / both")
    for column in ("model", "defence", "epsilon", "MRR tail/head/both", "paper's tail", "strongest on C", "on B"):
        table.add_column(column)
    for place, model in enumerate(MODELS):
        for path in sorted(RESULTS.glob(f"{model}-*.json"), key=_order):
            record = json.loads(path.read_text())
            key = f"{record['defence']}-{record['epsilon']:g}"
            printed = published.get(key, [])
            test = record["test"]
            table.add_row(
                model,
                record["defence"],
                f"{record['epsilon']:g}" if record["epsilon"] else "-",
                " / ".join(f"{test[f'{side}.realistic.mrr']:.3f}" for side in ("tail", "head", "both")),
                f"{printed[place]:.3f}" if printed else "",
                *(_strongest(record["outcomes"], design) for design in "CB"),
            )
    Console(width=170).print(table)
    for path in sorted(RESULTS.glob("*.json"))[:1]:
        for name, metrics in json.loads(path.read_text())["controls"].items():
            sides = " / ".join(f"{metrics[f'{side}.realistic.mrr']:.3f}" for side in ("tail", "head", "both"))
            print(f"{name}: {sides}")


def _order(path: Path) -> tuple[int, float]:
    record = json.loads(path.read_text())
    return ("none", *DEFENCES).index(record["defence"]), record["epsilon"]


def _strongest(outcomes: list[dict[str, Any]], design: str) -> str:
    found = [row for row in outcomes if row["design"] == design]
    if not found:
        return ""
    best = max(found, key=lambda row: row["auc"]["value"])
    low, high = best["auc"]["low"], best["auc"]["high"]
    return f"{best['attack']} AUC {best['auc']['value']:.3f} [{low:.3f}, {high:.3f}]"


def main(arguments: list[str]) -> int:
    """Run the cells that are asked for and not there yet, then print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks defence", description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), action="append")
    parser.add_argument("--defence", choices=("none", *DEFENCES), action="append")
    parser.add_argument("--epsilon", type=float, action="append")
    parser.add_argument("--active", action="store_true", help="also CIA, which trains on forks and takes minutes")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories are kept meanwhile")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    options = parser.parse_args(arguments)
    if not options.show:
        for defence in options.defence or ("none", *DEFENCES):
            for model in options.model or MODELS:
                for epsilon in [0.0] if defence == "none" else options.epsilon or BUDGETS:
                    print(f"{time.strftime('%H:%M:%S')} {model} {defence} {epsilon:g}", flush=True)
                    cell(model, defence, epsilon, options.runs, options.active)
    show()
    return 0
