"""Train one federation, look at it where its cells are, attack it, and write them. Interrupted, it goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedkge import __version__
from fedkge.api.training import resume, start
from fedkge.base.errors import RunError
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.experiments.cia import CIA
from fedkge.experiments.experiment import AttackPlan, Outcome, fitting_attacks, run_attacks
from fedkge.experiments.outcomes import with_few_curves
from fedkge.graph import Graph
from fedkge.graph.datasets import load
from fedkge.graph.split import Shards, split
from fedkge.runs.directory import RunDirectory
from fedkge.runs.run import Run
from fedkge.store.durable_files import write_atomically
from paper.cells import Cell, Key
from paper.crossings import crossings, defences_of, spent_after
from paper.grid import Tell
from paper.plan import Work
from paper.subgraph import most_frequent
from paper.watching import Look, Watch, look

ROC_POINTS = 64
"""Points that are kept of a curve: what a figure can show."""


@dataclass(frozen=True)
class Places:
    """Where run directories and results are kept, and how the whole was called."""

    runs: Path
    results: Path
    command: str
    keep_runs: bool = False


def measure(work: Work, places: Places, tell: Tell) -> None:
    """Make the cells of `work`; the run directory goes when they are written."""
    tell("loading", 0.0)
    shards = shards_for(work)
    own = _with_public_sizes(work.configuration, shards)
    defences = defences_of(shards.graphs, own) if work.budgets else []
    at = crossings(defences, work.budgets) if work.budgets else {}
    configuration = _recording(own, at.values())
    watch = Watch(places.runs / work.name, tell)
    run = _trained(configuration, shards, places.runs / work.name, watch)
    training, began = watch.seconds, time.perf_counter()
    outcomes = attacked(run, work, tell)
    seconds = {"training": round(training, 1), "attacks": round(time.perf_counter() - began, 1)}
    for key in work.keys:
        number = at.get(key.epsilon, int(run.metrics[-1]["round"]) if run.metrics else configuration.training.rounds)
        seen = seen_at(number, run, watch)
        spent = spent_after(defences, number) if defences else _spent(run)
        cell = _cell(key, number, run, outcomes, seen, seconds, spent=spent, digest=work.digest, command=places.command)
        cell.write(places.results)
    if not places.keep_runs:
        shutil.rmtree(places.runs / work.name)


def _spent(run: Run) -> dict[str, float]:
    """What the ledger says at the end; nothing without a defence."""
    return {"sound": max(run.epsilon().values())} if run.ledger is not None else {}


def seen_at(number: int, run: Run, watch: Watch) -> Look:
    """How well the model of a round ranks: as it was seen then, or now if it is the one that the run ended with."""
    if number == 0:
        return {}
    found = watch.at(number)
    if found is None and run.metrics and number != run.metrics[-1]["round"]:
        raise RunError(f"{run.directory}: round {number} was not recorded; remove this folder, and it is trained again")
    return found or look(run)


def shards_for(work: Work) -> Shards:
    """The clients' graphs: of the whole data set, or of its most frequent entities."""
    options = work.configuration
    graph = _graph(options.data.source, work.entities)
    return split(graph, options.data.clients, options.data.split, options.experiment.seed or 0, options.data.overlap)


@lru_cache(maxsize=2)
def _graph(data: str, entities: int) -> Graph:
    """Kept for the next federation that the same process trains."""
    graph = load(data)
    return most_frequent(graph, entities) if entities else graph


def _with_public_sizes(configuration: Configuration, shards: Shards) -> Configuration:
    """With the largest client's size as the public one: the graphs are public benchmarks, so no size is paid for, and
    the rounds at which budgets are crossed are known before the run.
    """
    if not chosen_defence(configuration).keeps_ledger or configuration.privacy.public_triples:
        return configuration
    return configuration.updated(public_triples=max(len(graph.train) for graph in shards.graphs))


def _recording(configuration: Configuration, crossed: Collection[int]) -> Configuration:
    """With the rounds kept where budgets are crossed, and the last one; as it is where there are no budgets."""
    if not crossed:
        return configuration
    chosen = sorted({*crossed, configuration.training.rounds} - {0})
    return configuration.updated(record=",".join(map(str, chosen)))


def _trained(configuration: Configuration, shards: Shards, folder: Path, watch: Watch) -> Run:
    configuration = configuration.updated(threads=1)  # processes share the cores
    if RunDirectory(folder).exists():
        return resume(folder, data=shards, observer=watch, threads=1)
    return start(configuration, shards.graphs, folder, observer=watch)


def attacked(run: Run, work: Work, tell: Tell) -> list[Outcome]:
    """Every attack that fits the model: passive ones often, active ones, which train on forks, as the plan says."""
    options, fitting = work.attacks, set(fitting_attacks(run))
    last = tuple(name for name in options.last_round_only if name in fitting)
    passive = tuple(name for name in options.passive if name in fitting and name not in last)
    active = tuple(name for name in options.active if name in fitting)
    found: list[Outcome] = []
    for names, every in (
        (passive, options.every),
        (last, run.configuration.training.rounds),
        (active, options.cia_every),
    ):
        if names:
            plan = AttackPlan(
                attacks=names,
                designs=options.designs if names != active else ("C",),
                every=every,
                fewer=True,
                cia=CIA(group_size=options.group_size, waiting_rounds=options.waiting_rounds),
            )
            found += kept_or_run(run, plan, tell)
    return found


def kept_or_run(run: Run, plan: AttackPlan, tell: Tell) -> list[Outcome]:
    """The outcomes of a plan; from the run directory if it was carried out before: nothing is attacked twice."""
    path = outcomes_path(run, plan)
    if path.exists():
        return [Outcome(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
    found = run_attacks(run, plan, lambda label, done, total: tell(label, 1.0 if not total else done / total))
    write_atomically(path, json.dumps([asdict(one) for one in found]).encode())
    return found


def outcomes_path(run: Run, plan: AttackPlan) -> Path:
    """Where the outcomes of a plan are kept until the run directory goes."""
    digest = hashlib.sha256(json.dumps(asdict(plan), sort_keys=True).encode()).hexdigest()[:16]
    return (run.directory or Path()) / f"outcomes-{digest}.json"


def _cell(
    key: Key, number: int, run: Run, outcomes: Sequence[Outcome], seen: Look, seconds: dict[str, float], **facts: Any
) -> Cell:
    """`number` is the round that the cell shows; without a defence it shows all of them."""
    shown = [one for one in outcomes if key.defence == "none" or one.round == number]
    tests = run.metrics[-1].get("tests", {}) if run.metrics else {}
    return Cell(
        key=key,
        round=number,
        rounds=run.configuration.training.rounds,
        version=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        configuration=run.configuration.updated(threads=0).changed_options(),
        utility=seen.get("utility", {}),
        controls=seen.get("controls", {}),
        attacks=tuple(plain(shown, curves=key.defence == "none")),
        exhausted=number < run.configuration.training.rounds
        or not key.epsilon
        or run.configuration.privacy.epsilon is not None,
        tests={name: sum(one[name] for one in tests.values()) for name in ("made", "passed")} if tests else {},
        **facts,
    )


def plain(outcomes: Sequence[Outcome], curves: bool) -> list[dict[str, Any]]:
    """Outcomes as a cell keeps them: few ROC curves, thinned, and only if asked."""
    kept = []
    for one in with_few_curves(outcomes):
        metrics = {name: value for name, value in one.metrics.items() if name != "roc"}
        if curves and "roc" in one.metrics:
            metrics["roc"] = {name: thinned(points) for name, points in one.metrics["roc"].items()}
        kept.append(
            {"attack": one.attack, "adversary": one.adversary, "design": one.design, "round": one.round, **metrics}
        )
    return kept


def thinned(points: Sequence[float]) -> list[float]:
    """At most so many points of a curve, first and last among them.

    >>> len(thinned([0.0] * 500)), thinned([0.0, 0.5, 1.0])
    (64, [0.0, 0.5, 1.0])
    """
    if len(points) <= ROC_POINTS:
        return [round(value, 4) for value in points]
    places = [round(place * (len(points) - 1) / (ROC_POINTS - 1)) for place in range(ROC_POINTS)]
    return [round(points[place], 4) for place in places]
