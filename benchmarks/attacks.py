"""How much do undefended federations give away? All attacks on FB15k-237 and NELL-995, beside the paper's Table 1.

Every federation is a run directory, so an interrupted benchmark goes on where it stopped; one JSON file per data set
and model is kept in `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from fedkge import __version__
from fedkge.api.training import open_run, resume, start
from fedkge.attacks.cia import CIA
from fedkge.base.machine import available_cores
from fedkge.configuration import parse
from fedkge.experiments.experiment import (
    ACTIVE,
    AttackPlan,
    Outcome,
    fitting_attacks,
    run_attacks,
)
from fedkge.models import MODELS
from fedkge.models.rotate import RotatE
from fedkge.runs.run import Run, RunDirectory

HERE = Path(__file__).parent
DATA = ("fb15k-237", "nell-995")
FAMILIES = {
    "si": ("si-centres", "si-link", "si-published"),
    "cip": ("cip", "cip-distance-ratio", "cip-matched", "cip-published"),
    "cia": ACTIVE,
}
"""The paper's three attacks, each in its forms for one adversary without collusion."""
SLOW = ("si-published",)
"""All pairs of entities take minutes, for a result near chance in every round: attacked at the last round only."""


def settings() -> dict[str, Any]:
    return tomllib.loads((HERE / "configurations" / "attacks.toml").read_text())


def trained(data: str, model: str, runs: Path) -> Run:
    """The attacked federation, trained, finished or just opened."""
    options = settings()
    configuration = parse({**options["common"], **options[model], "data": data, "model": model})
    out = runs / f"attacked-{data}-{model}-{configuration.digest}"
    if (out / "model.safetensors").exists():
        return open_run(out)
    return resume(out) if RunDirectory(out).exists() else start(configuration, None, out)


def attack(data: str, model: str, runs: Path, cia_every: int, cia: CIA) -> None:
    """Passive attacks on all designs every 5 rounds, CIA on the canaries every `cia_every`; then the JSON."""
    began = time.perf_counter()
    run = trained(data, model, runs)
    ready = time.perf_counter()
    cores = available_cores()
    kept = earlier(data, model, run)
    done = {(outcome["attack"], outcome.get("waiting_rounds", CIA().waiting_rounds)) for outcome in kept["outcomes"]}
    fitting = [name for name in fitting_attacks(run) if (name, cia.waiting_rounds if name in ACTIVE else 5) not in done]
    passive = tuple(name for name in fitting if name not in ACTIVE)
    active = tuple(name for name in fitting if name in ACTIVE)
    count = 500 if data == "fb15k-237" else 200

    def tell(label: str, done: int, total: int) -> None:
        print(f"  {time.perf_counter() - ready:6.0f} s  {done}/{total}  {label}", flush=True)

    outcomes: list[Outcome] = []
    for names, every in (
        (tuple(name for name in passive if name not in SLOW), 5),
        (SLOW, run.configuration.training.rounds),
    ):
        if chosen := tuple(name for name in names if name in passive):
            outcomes += run_attacks(run, AttackPlan(attacks=chosen, count=count, threads=cores, every=every), tell)
    middle = time.perf_counter()
    if active:
        plan = AttackPlan(attacks=active, designs=("C",), every=cia_every, threads=cores, cia=cia)
        outcomes += run_attacks(run, plan, tell)
    command = f"python -m benchmarks attacks --data {data} --model {model} --cia-every {cia_every} "
    command += f"--group-size {cia.group_size} --waiting-rounds {cia.waiting_rounds}"
    result = {
        "data": data,
        "model": model,
        "command": " && ".join([*([kept["command"]] if "command" in kept else []), *([command] if outcomes else [])]),
        "version": __version__,
        "seconds": kept.get("seconds")
        or {
            "training (this call)": round(ready - began, 1),
            "passive attacks": round(middle - ready, 1),
            "cia": round(time.perf_counter() - middle, 1),
            "cores": cores,
        },
        "configuration": run.configuration.as_options(),
        "relation_alignment": alignment(run),
        "test": {key: value for key, value in run.metrics[-1].items() if key != "clients"},
        "outcomes": kept["outcomes"] + [plain(outcome, cia) for outcome in outcomes],
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / f"attacks-{data}-{model}.json").write_text(json.dumps(result, indent=1) + "\n")


def alignment(run: Run) -> dict[str, Any]:
    """How alike victim's and adversary's rows of the same relation are, and how many entities they share.

    Nobody averages relations, and a client that attacks has only its own.
    """
    pair = (run.configuration.experiment.victim, run.configuration.experiment.adversary)
    rows = [dict(zip(run.tensors[f"relation_ids/{one}"], run.tensors[f"relations/{one}"], strict=True)) for one in pair]
    scorer = run.embedding(pair[0]).scorer
    cosines = []
    for relation in rows[0].keys() & rows[1].keys():
        first, second = rows[0][relation], rows[1][relation]
        if isinstance(scorer, RotatE):
            cosines.append(float(np.cos((first - second) * np.pi / scorer.phase_range).mean()))
        else:
            cosines.append(float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second))))
    entities = [set(run.shards[run.clients.index(one)].entities) for one in pair]
    return {
        "relations": len(cosines),
        "cosine": {f"{100 * share:.0f} %": round(float(np.quantile(cosines, share)), 3) for share in (0.1, 0.5, 0.9)},
        "entities": [len(names) for names in entities],
        "shared_entities": len(entities[0] & entities[1]),
    }


def earlier(data: str, model: str, run: Run) -> dict[str, Any]:
    """What is kept of an earlier benchmark of the same federation: only attacks that it lacks are run."""
    path = HERE / "results" / f"attacks-{data}-{model}.json"
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    same = content and parse(content["configuration"]).digest == run.configuration.digest
    return content if same else {"outcomes": []}


def plain(outcome: Outcome, cia: CIA) -> dict[str, Any]:
    """An outcome without its ROC points; of CIA also how it was played."""
    metrics = {key: value for key, value in outcome.metrics.items() if key != "roc"}
    return {
        **(asdict(cia) if outcome.attack in ACTIVE else {}),
        "attack": outcome.attack,
        "adversary": outcome.adversary,
        "design": outcome.design,
        "round": outcome.round,
        **metrics,
    }


def show() -> None:
    """The paper's table beside ours on canaries, then every attack on every design at the last round."""
    published = settings()["published"]
    table = Table(title="Best-round F1 on canaries (design C): paper / best form here, its name (floor 0.667)")
    for column in ("data", "model", "SI", "CIP", "CIA", "strongest TPR at 1 % FPR, last round"):
        table.add_column(column)
    for data in DATA:
        for place, model in enumerate(MODELS):
            path = HERE / "results" / f"attacks-{data}-{model}.json"
            if path.exists():
                rows = [row for row in json.loads(path.read_text())["outcomes"] if row["design"] == "C"]
                cells = [_cell(rows, FAMILIES[name], published[data][name][place:][:1]) for name in FAMILIES]
                table.add_row(data, model, *cells, _strongest(rows))
    Console(width=150).print(table)


def _cell(rows: list[dict[str, Any]], names: tuple[str, ...], printed: list[float]) -> str:
    found = [row for row in rows if row["attack"] in names]
    if not found:
        return "does not fit the model"
    best = max(found, key=lambda row: row["best_f1"]["value"])
    paper = f"{printed[0]:.3f}" if printed else "-"
    return f"{paper} / {best['best_f1']['value']:.3f} {best['attack']} (round {best['round']})"


def _strongest(rows: list[dict[str, Any]]) -> str:
    last = max(row["round"] for row in rows)
    ranked = sorted((row for row in rows if row["round"] == last), key=lambda row: -row["tpr"][1]["value"])
    return ", ".join(f"{row['attack']} {row['tpr'][1]['value']:.3f}" for row in ranked[:3])


def main(arguments: list[str]) -> int:
    """Attack the cells that are asked for, then print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks attacks", description=__doc__)
    parser.add_argument("--data", choices=DATA, action="append")
    parser.add_argument("--model", choices=sorted(MODELS), action="append")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories are kept")
    parser.add_argument("--cia-every", type=int, default=10, help="CIA trains on forks, so it is attacked less often")
    parser.add_argument("--group-size", type=int, default=CIA().group_size, help="CIA: targets attacked at once")
    parser.add_argument("--waiting-rounds", type=int, default=CIA().waiting_rounds, help="CIA: rounds until it looks")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    options = parser.parse_args(arguments)
    if not options.show:
        for data in options.data or DATA:
            for model in options.model or MODELS:
                print(f"{data} {model}", flush=True)
                attack(data, model, options.runs, options.cia_every, CIA(options.group_size, options.waiting_rounds))
    show()
    return 0
