"""`fedkge demo`: three hospitals that share no record train together, and are attacked, in about a minute."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.cli.attack import attack_progress, outcome_key, outcome_table
from fedkge.cli.errors import stops_at_once
from fedkge.cli.predict import answer_table
from fedkge.cli.progress import narrator
from fedkge.cli.tables import cost_line, metric_rows, metric_table, print_json, say, shard_table, stdout

if TYPE_CHECKING:
    from fedkge.attacks.experiment import Outcome
    from fedkge.federation.run import Run
    from fedkge.graph.split import Shards

EXAMPLE = "Example: fedkge demo"

SETTINGS: dict[str, Any] = {
    "model": "transe",
    "split": "entity",
    "dimension": 64,
    "margin": 4.0,
    "rounds": 20,
    "local_epochs": 3,
    "negatives": 64,
    "learning_rate": 0.01,
    "evaluate_every": 5,
    "validation_triples": 500,
    "seed": 7,
}
"""Sizes: so that two cores need well under a minute, compiling included. Margin: of 4, 6, 8 and 10 the one with which
the baseline, each client alone, validates best (the first trials, margins among them, had been compared on test)."""

CANARIES = 400
"""Random triples that the attacks look for; half of them are put into the first hospital's data."""

HOSPITALS = 3
RELATION = "has_phenotype"


def demo(
    out: Annotated[Path, typer.Option(help="Run directory; a demo run there is replaced.")] = Path("runs/fedkge-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Train three "hospitals" on a real graph of rare diseases, together and alone; ask a question; attack."""
    from fedkge.graph.datasets import load  # noqa: PLC0415 (heavy)
    from fedkge.graph.split import split  # noqa: PLC0415

    graph = load("demo")
    shards = split(graph, HOSPITALS, SETTINGS["split"], SETTINGS["seed"])
    if not as_json:
        _introduce(shards)
    together = _train(shards, "fede", out, canaries=CANARIES, record=f"every:{min(5, SETTINGS['rounds'])}")
    alone = _train(shards, "isolated", None)
    outcomes = _attack(together)
    _show(together, alone, outcomes, graph.notice, as_json)


def _introduce(shards: Shards) -> None:
    console = stdout()
    console.print(
        "Three hospitals know different parts of a graph of rare diseases: phenotypes, genes, inheritance. They may "
        "not show each other their triples; they send vectors of entities to a server, which averages them. "
        "Nothing limits yet what the vectors reveal: the attacks at the end measure it.\n"
    )
    console.print(shard_table(shards.summary, console.width))


def _attack(run: Run) -> list[Outcome]:
    """Every attack that fits, on the canaries, after the last round."""
    from fedkge.attacks.experiment import AttackPlan, fitting_attacks, run_attacks  # noqa: PLC0415 (heavy)

    rounds = run.configuration.rounds
    plan = AttackPlan(attacks=tuple(fitting_attacks(run)), designs=("C",), every=rounds, threads=HOSPITALS - 1)
    with attack_progress() as progress:
        return run_attacks(run, plan, progress)


def _train(shards: Shards, strategy: str, out: Path | None, **options: Any) -> Run:
    from fedkge import runs  # noqa: PLC0415 (heavy)
    from fedkge.configuration import parse  # noqa: PLC0415

    configuration = parse({"data": "demo", "clients": HOSPITALS, "strategy": strategy, **SETTINGS, **options})
    hint = "start again with: fedkge demo"
    with narrator() as told, stops_at_once(hint, told.stop):
        return runs.start(configuration, shards.graphs, out, overwrite=True, observer=told)


def _show(together: Run, alone: Run, outcomes: list[Outcome], notice: str, as_json: bool) -> None:
    from fedkge.predictions import predict  # noqa: PLC0415 (heavy)

    shared, isolated = together.metrics[-1], alone.metrics[-1]
    head, relation = _example(together)
    answer = predict(together, relation, head=head, top=5, client="client-0", unseen_only=True)
    if as_json:
        attacks = [{**outcome_key(outcome), "auc": outcome.metrics["auc"]} for outcome in outcomes]
        results = {"federated": shared, "isolated": isolated, "prediction": asdict(answer), "attacks": attacks}
        print_json({"run": str(together.directory), **results, "notice": notice})
        return
    name = together.embedding().scorer.name
    first, *others = metric_rows(shared, f"{name}, together", each=False)
    second = metric_rows(isolated, f"{name}, each alone", each=False)[0]
    console = stdout()
    console.print(metric_table([first, second, *others], "Held-out triples, ranked on both sides"))
    console.print(f"Popularity learns nothing but what is frequent: the control. {cost_line(together, shared)}\n")
    console.print(
        "A question, without the answers that were trained on; test: held out and true, new: not in the graph."
    )
    console.print(answer_table(answer))
    _show_attacks(together, outcomes)
    console.print(notice, markup=False)
    console.print(f"Run: {together.directory}", markup=False, soft_wrap=True)
    say(f"Next: fedkge predict {together.directory} --head Seizure --relation affects_system")


def _show_attacks(run: Run, outcomes: list[Outcome]) -> None:
    console = stdout()
    console.print(
        f"The attacks: {CANARIES} random triples, half of them hidden in the first hospital's data. How well does each "
        "adversary tell which? AUC 0.5 is guessing, 1 is certainty; F1 0.667 takes no skill at all."
    )
    console.print(outcome_table(outcomes, console.width))
    console.print(f"Everything about them: {run.directory}/attacks.json\n", markup=False, soft_wrap=True)


def _example(run: Run) -> tuple[str, str]:
    """A question with as many held-out answers as possible: the disease with most phenotypes in client-0's test."""
    shard = run.shards[0]
    relation = shard.relations.id_of(RELATION)
    heads = [head for head, asked, _ in shard.test.tolist() if asked == relation]
    head, _ = Counter(heads).most_common(1)[0]
    return shard.entities[head], RELATION
