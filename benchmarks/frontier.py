"""What does a budget buy? A defence's options over data sets, models, budgets and seeds, beside counting.

A cell is one federation of three clients by entity. Beside its MRR stand, on the same triples: popularity, exact and
at the same epsilon, and its own counts without the embedding, which tells what the embedding adds. Cells are
kept in `benchmarks/results/frontier/`, so an interrupted sweep goes on where it stopped. With `--attacks` a cell has
1,000 canaries, and all passive attacks are played. One more adversary, `released-counts`, holds the victim's noisy
counts and knows all other triples: what whoever is given the whole model could do, and no party of the federation.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge import __version__
from fedkge.attacks.canaries import CANARIES
from fedkge.attacks.experiment import ACTIVE, AttackPlan, fitting_attacks, run_attacks
from fedkge.attacks.target_files import read_targets
from fedkge.audit.metrics import auc
from fedkge.configuration import Configuration, parse
from fedkge.copies import CopyPrior
from fedkge.evaluation import rank, weighted_metrics
from fedkge.evaluation.popularity import Popularity
from fedkge.federation.run import Run
from fedkge.graph import Side, Triples
from fedkge.models import MODELS
from fedkge.prior import CountPrior
from fedkge.prior.released import profile_cells, typed_cells
from fedkge.runs import start

RESULTS = Path(__file__).parent / "results" / "frontier"
DATA = ("fb15k-237", "nell-995", "codex-m", "ddb14", "demo")
BUDGETS = (1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = (11, 12, 13)
ROUNDS = 25
SLOW = ("si-published",)
MRR = "both.realistic.mrr"
HOLDER = "released-counts"


class CountsAlone:
    """A client's counts as a ranking of their own."""

    def __init__(self, prior: CountPrior | CopyPrior, entities: int) -> None:
        self._prior, self.candidates = prior, entities

    def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Fill `out` with what counts say."""
        out.fill(0)
        self._prior.add_scores(triples, side, out)


def configuration_of(
    data: str, model: str, epsilon: float, seed: int, options: dict[str, Any], attacks: bool
) -> Configuration:
    budget = {"epsilon": epsilon, "defence": "recommended"} if epsilon else {}
    common = {"data": data, "model": model, "clients": 3, "rounds": ROUNDS, "seed": seed, "evaluate-every": 0}
    noise = {"noise-seed": seed} if epsilon else {}  # repeatable: all of these graphs are public
    played = {"canaries": 1000, "record": "every:5"} if attacks else {}
    return parse({**common, **budget, **noise, **played, **options})


def cell(configuration: Configuration, name: str, runs: Path, attacks: bool) -> None:
    """Train, rank, attack if asked, write the JSON."""
    path = RESULTS / f"{name}.json"
    if path.exists():
        return
    began, out = time.perf_counter(), runs / f"frontier-{name}"
    shutil.rmtree(out, ignore_errors=True)  # of an interrupted cell
    run = start(configuration, None, out if attacks else None)
    record = {
        "data": configuration.data,
        "model": configuration.model,
        "epsilon": configuration.epsilon or 0,
        "seed": configuration.seed,
        "version": __version__,
        "configuration": configuration.model_dump(exclude_defaults=True, exclude={"threads"}),
        "spent": run.epsilon() if run.ledger else {},
        "test": {key: value for key, value in run.metrics[-1].items() if ".realistic.mrr" in key},
        "controls": controls(run),
        "outcomes": attacked(run) if attacks else [],
        "seconds": round(time.perf_counter() - began, 1),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)


def controls(run: Run) -> dict[str, dict[str, float]]:
    """The MRRs of counting, averaged over clients by their test triples."""
    epsilon, found = run.configuration.epsilon, defaultdict(list)
    for name, shard in zip(run.clients, run.shards, strict=True):
        if not len(shard.test):
            continue
        size, generator = len(shard.entities), np.random.default_rng(run.configuration.seed)
        scorers: dict[str, Any] = {"popularity": Popularity.count(shard.train, size)}
        if epsilon:
            noisy = Popularity.count(shard.train, size, epsilon=epsilon, generator=generator)
            scorers["popularity, same epsilon"] = noisy
        if prior := run.prior(name):
            scorers["counts alone"] = CountsAlone(replace(prior, weight=1.0), size)
        for control, scorer in scorers.items():
            ranking = rank(scorer, shard.test, shard.true_triples, threads=run.configuration.threads or None)
            found[control].append((len(ranking), ranking.metrics()))
    averages = {control: weighted_metrics(parts) for control, parts in found.items()}
    return {name: {key: number for key, number in row.items() if "mrr" in key} for name, row in averages.items()}


def attacked(run: Run) -> list[dict[str, Any]]:
    names = tuple(name for name in fitting_attacks(run) if name not in (*SLOW, *ACTIVE))
    threads = run.configuration.threads or 1
    plan = AttackPlan(attacks=names, designs=("B", "C"), every=run.configuration.rounds, threads=threads)
    outcomes = [
        {"attack": each.attack, "design": each.design, "auc": each.metrics["auc"]} for each in run_attacks(run, plan)
    ]
    return [*outcomes, *holder_of_counts(run)]


def holder_of_counts(run: Run) -> list[dict[str, Any]]:
    """The best guess about each canary from the two cells that it raises in each table, all other triples known."""
    victim, prior = run.configuration.victim, run.prior(run.configuration.victim)
    if not isinstance(prior, CountPrior) or run.directory is None:
        return []
    targets = read_targets(run.directory / CANARIES, run.entities, run.relations)
    shard, counts = run.shards[run.clients.index(victim)], prior.released
    sizes = counts.entities, counts.relations
    names = (shard.entities.id_of, shard.relations.id_of, shard.entities.id_of)
    vocabularies = (run.entities, run.relations, run.entities)
    canaries = np.array(
        [
            [own(words[number]) for own, words, number in zip(names, vocabularies, triple, strict=True)]
            for triple in targets.triples.tolist()
        ]
    )
    train, members = np.unique(shard.train, axis=0).astype(np.int64), np.asarray(targets.members)
    scores = np.zeros(len(canaries))
    for table, cells_of in (
        (counts.profile, lambda some: profile_cells(some, *sizes)),
        (counts.typed, lambda some: typed_cells(some, counts.types, counts.number_of_types, *sizes)),
    ):
        held, times = np.unique(cells_of(train), return_counts=True)
        for cells in cells_of(canaries).T:
            others = _looked_up(cells, held, times) - members
            scores += np.where(_looked_up(cells, table.keys, table.values) > others, 1, -1) / table.scale
    area = auc(scores, members)
    return [{"attack": HOLDER, "design": "C", "auc": {"value": area.value, "low": area.low, "high": area.high}}]


def _looked_up(cells: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value of each cell, 0 for those that are not there."""
    places = np.minimum(np.searchsorted(keys, cells), len(keys) - 1)
    return np.where(keys[places] == cells, values[places], 0)


def show(draw: Path | None) -> None:
    """Mean and spread over seeds for every data set, model and budget; the frontier as a picture."""
    groups: dict[tuple[str, str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        groups[record["data"], record["model"], path.stem.split("+", 1)[-1].split("@")[0], record["epsilon"]].append(
            record
        )
    for (data, model, variant, epsilon), records in sorted(groups.items()):
        mine = [record["test"][MRR] for record in records]
        beside = {
            name: statistics.fmean(record["controls"][name][MRR] for record in records)
            for name in records[0]["controls"]
        }
        others = ", ".join(f"{name} {value:.4f}" for name, value in beside.items())
        spread = statistics.stdev(mine) if len(mine) > 1 else float("nan")
        mean = statistics.fmean(mine)
        print(f"{data:10} {model:9} {variant:14} {epsilon:4g}: {mean:.4f} +- {spread:.4f} ({len(mine)}); {others}")
        strongest = [
            max(
                (row["auc"]["value"], row["attack"])
                for row in record["outcomes"]
                if row["design"] == "C" and row["attack"] != HOLDER
            )
            for record in records
            if record["outcomes"]
        ]
        for value, attack in strongest:
            print(f"{'':10} strongest attack on canaries: {attack}, AUC {value:.3f}")
        for row in (row for record in records for row in record["outcomes"] if row["attack"] == HOLDER):
            print(f"{'':10} who holds the counts and knows the rest: AUC {row['auc']['value']:.3f}")
    if draw:
        draw_frontier(groups, draw)


def draw_frontier(groups: dict[tuple[str, str, str, float], list[dict[str, Any]]], path: Path) -> None:
    """Epsilon against MRR, one panel per data set."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (heavy)

    names = sorted({data for data, *_ in groups})
    figure = Figure(figsize=(4.2 * len(names), 3.6), layout="constrained")
    for axes, data in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for (where, model, variant, epsilon), records in sorted(groups.items()):
            if where != data or not epsilon:
                continue
            lines[f"{model} {variant}"].append((epsilon, statistics.fmean(r["test"][MRR] for r in records)))
            same = statistics.fmean(r["controls"]["popularity, same epsilon"][MRR] for r in records)
            lines["popularity, same epsilon"].append((epsilon, same))
        for label, points in lines.items():
            axes.plot(*zip(*sorted(set(points)), strict=True), "--" if "popularity" in label else "-o", label=label)
        axes.set(title=data, xlabel="epsilon", ylabel="MRR, both sides", xscale="log")
        axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def value_of(text: str) -> Any:
    """What stands after = : JSON where it is, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main(arguments: list[str]) -> int:
    """Run the cells that are asked for and not there yet, then print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks frontier", description=__doc__)
    parser.add_argument("--data", action="append", help=f"default: {', '.join(DATA)}")
    parser.add_argument("--model", choices=sorted(MODELS), action="append")
    parser.add_argument("--epsilon", type=float, action="append", help="0: no defence")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the defence")
    parser.add_argument("--attacks", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories are kept meanwhile")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    parser.add_argument("--draw", type=Path, help="write the frontier to this .svg")
    options = parser.parse_args(arguments)
    chosen = {key: value_of(value) for key, _, value in (text.partition("=") for text in sorted(options.set))}
    variant = ",".join(f"{key}={value}" for key, value in chosen.items()) or "default"
    for data in () if options.show else options.data or DATA:
        for model in options.model or MODELS:
            for epsilon in options.epsilon or BUDGETS:
                for seed in options.seed or SEEDS:
                    name = f"{data}-{model}+{variant}@{epsilon:g}-{seed}{'-attacked' if options.attacks else ''}"
                    print(time.strftime("%H:%M:%S"), name, flush=True)
                    configuration = configuration_of(data, model, epsilon, seed, chosen, options.attacks)
                    configuration = configuration.model_copy(update={"threads": options.threads})
                    cell(configuration, name, options.runs, options.attacks)
    show(options.draw)
    return 0
