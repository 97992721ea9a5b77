"""`fedkge demo`: three hospitals train together, are attacked, defend themselves, are attacked and audited again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.errors import RunError
from fedkge.cli.attack import attack_progress, outcome_key
from fedkge.cli.audit import sentences
from fedkge.cli.budget import budget_record, budget_table
from fedkge.cli.errors import stops_at_once
from fedkge.cli.predict import answer_table
from fedkge.cli.progress import narrator
from fedkge.cli.report import NAMES, write_report
from fedkge.cli.tables import cost_line, grid, metric_rows, metric_table, print_json, say, shard_table, stdout

if TYPE_CHECKING:
    from fedkge.api.predictions import Answer
    from fedkge.experiments.experiment import Outcome
    from fedkge.experiments.recorded_audit import RunAudit
    from fedkge.graph.split import Shards
    from fedkge.runs.run import Run

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

DEFENDED: dict[str, Any] = {
    "model": "transe",
    "split": "entity",
    "epsilon": 8.0,
    "rounds": 20,
    "evaluate_every": 0,
    "canary_coins": "independent",
    "seed": 7,
}
"""The recommended defence as it is; what it costs in earnest is measured on larger graphs, in benchmarks/."""

TARGETS = 1200
"""Real triples of the first hospital that attacks and audit look for; a coin takes each of them from it, or not."""

HOSPITALS = 3
NONE = ("-", "-")
"""In place of an attack's numbers where it was not possible."""
RELATION = "has_phenotype"


def demo(
    out: Annotated[Path, typer.Option(help="Run directory; a demo run there is replaced.")] = Path("runs/fedkge-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Train three "hospitals" on a real graph of rare diseases, attack them, defend them, attack and audit again.

    The end is a page that says what was promised, what was measured and what is not covered.
    """
    from fedkge.graph.datasets import load  # noqa: PLC0415 (heavy)
    from fedkge.graph.split import split  # noqa: PLC0415

    graph = load("demo")
    shards = split(graph, HOSPITALS, SETTINGS["split"], SETTINGS["seed"])
    if not as_json:
        _introduce(shards)
    together = _train(shards, out, **SETTINGS, **_watched(SETTINGS))
    alone = _train(shards, None, strategy="isolated", **SETTINGS)
    defended = _train(shards, out.with_name(f"{out.name}-defended"), **DEFENDED, **_watched(DEFENDED))
    story = Story(together, alone, defended, _attack(together), _attack(defended), _audit(defended))
    if as_json:
        print_json({**story.record(), "notice": graph.notice})
    else:
        story.tell(graph.notice)


def _watched(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"canaries": TARGETS, "canary_source": "real", "record": f"every:{min(5, settings['rounds'])}"}


def _introduce(shards: Shards) -> None:
    console = stdout()
    console.print(
        "Three hospitals know different parts of a graph of rare diseases: phenotypes, genes, inheritance. They may "
        "not show each other their triples; they send vectors of entities to a server, which averages them. First "
        "nothing limits what the vectors reveal, and attacks measure it; then every hospital defends itself: it makes "
        "a noisy copy of its graph and trains on that alone.\n"
    )
    console.print(shard_table(shards.summary, console.width))


def _train(shards: Shards, out: Path | None, **options: Any) -> Run:
    from fedkge.api import training as runs  # noqa: PLC0415 (heavy)
    from fedkge.defences import parse  # noqa: PLC0415

    configuration = parse({"data": "demo", "clients": HOSPITALS, **options})
    hint = "start again with: fedkge demo"
    with narrator() as told, stops_at_once(hint, told.stop):
        return runs.start(configuration, shards.graphs, out, overwrite=True, observer=told)


def _attack(run: Run) -> list[Outcome]:
    """Every attack that fits, the shadow attack among them, on the real targets after the last round."""
    from fedkge.experiments.experiment import AttackPlan, fitting_attacks, run_attacks  # noqa: PLC0415 (heavy)
    from fedkge.experiments.shadow_attack import SHADOW, SHADOWS  # noqa: PLC0415

    names, rounds, cores = (*fitting_attacks(run), SHADOW), run.configuration.training.rounds, HOSPITALS - 1
    shadows = replace(SHADOWS, processes=cores)
    plan = AttackPlan(attacks=names, designs=("R",), every=rounds, fewer=True, threads=cores, real_shadows=shadows)
    with attack_progress() as progress:
        return run_attacks(run, plan, progress)


def _audit(run: Run) -> RunAudit:
    from fedkge.experiments.recorded_audit import run_audit  # noqa: PLC0415 (heavy)

    with attack_progress() as progress:
        return run_audit(run, progress=progress)


@dataclass(frozen=True)
class Story:
    """Everything that the demo found."""

    together: Run
    alone: Run
    defended: Run
    found: list[Outcome]
    found_defended: list[Outcome]
    audit: RunAudit

    def record(self) -> dict[str, Any]:
        """The story for programs."""
        return {
            "run": str(self.together.directory),
            "federated": self.together.metrics[-1],
            "isolated": self.alone.metrics[-1],
            "prediction": asdict(self._answer()),
            "attacks": _aucs(self.found),
            "defended": {
                "run": str(self.defended.directory),
                "test": self.defended.metrics[-1],
                "privacy": budget_record(self.defended),
                "attacks": _aucs(self.found_defended),
                "audit": self.audit.record(),
                "report": str(self._report()[0]),
            },
        }

    def tell(self, notice: str) -> None:
        """The story for people."""
        console = stdout()
        shared, name = self.together.metrics[-1], self.together.embedding().scorer.name
        first, *others = metric_rows(shared, f"{name}, together", each=False)
        second = metric_rows(self.alone.metrics[-1], f"{name}, each alone", each=False)[0]
        epsilon = self.defended.configuration.privacy.epsilon
        third = metric_rows(self.defended.metrics[-1], f"{name}, together, epsilon {epsilon:g}", each=False)[0]
        console.print(metric_table([first, second, third, *others], "Held-out triples, ranked on both sides"))
        console.print(
            "Popularity learns nothing but what is frequent: an experimenter's control, which no budget pays for. Each "
            "hospital has only about 8,000 triples, "
            f"and privacy costs such small graphs most. {cost_line(self.together, shared)}\n"
        )
        console.print("A question to the open federation; test: held out and true, new: not in the graph.")
        console.print(answer_table(self._answer()))
        self._tell_attacks()
        self._tell_promise()
        console.print(notice, markup=False)
        say(f"Next: fedkge predict {self.together.directory} --head Seizure --relation affects_system")

    def _tell_attacks(self) -> None:
        console = stdout()
        console.print(
            f"The attacks: before training, a coin took each of {TARGETS:,} triples from the first hospital, or left "
            "it. How well does each adversary tell which? AUC 0.5 is guessing, 1 is certainty. The shadow attacks know "
            "every triple but the coins, and train two federations with other coins to learn what to look for. A "
            "recipient is given the final model. An auditor sees the noisy copy itself: nobody does, but the promise "
            "holds against it too. A client is asked only about the few triples among its own names."
        )
        before, after = (
            {(one.attack, one.adversary): _cells(one) for one in found} for found in (self.found, self.found_defended)
        )
        rows = [(*key, *before.get(key, NONE), *after.get(key, NONE)) for key in {**before, **after}]
        header = ("attack", "adversary", "AUC, open", "TPR@1%", "AUC, defended", "TPR@1%")
        console.print(grid("", header, rows, words=(0, 1)))

    def _tell_promise(self) -> None:
        console, budget = stdout(), budget_record(self.defended)
        if budget:
            console.print(budget_table(budget))
        console.print(
            "A noisy copy is made of answers about likely triples, and real triples are likely: at this epsilon most "
            "of them can be told from the copy. If that is not acceptable, choose a smaller epsilon.\n"
        )
        console.print("The audit of the defended federation; coins of the operating system chose which triples stayed:")
        for line in sentences(self.audit):
            console.print(f"  {line}", markup=False)
        path, verdict = self._report()
        console.print(f"\n{verdict}", style="bold", markup=False)
        console.print(f"The owner's page, which says all this: {path}", markup=False, soft_wrap=True)
        shareable = path.with_name(NAMES[False])
        console.print(
            f"The page that may be passed on, with only what is public or paid for: {shareable}",
            markup=False,
            soft_wrap=True,
        )

    def _report(self) -> tuple[Path, str]:
        """The path of the owner's page and its verdict; the shareable page is written beside it."""
        run, beside = _directory(self.defended), _directory(self.together)
        write_report(run, run / NAMES[False])
        document = write_report(run, run / NAMES[True], for_owner=True, beside=[beside])
        return run / NAMES[True], document.verdict.sentence

    def _answer(self) -> Answer:
        from fedkge.api.predictions import predict  # noqa: PLC0415 (heavy)

        head, relation = _example(self.together)
        return predict(self.together, relation, head=head, top=5, client="client-0", unseen_only=True)


def _directory(run: Run) -> Path:
    if run.directory is None:
        raise RunError("the demo keeps its runs in directories")
    return run.directory


def _aucs(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    return [{**outcome_key(outcome), "auc": outcome.metrics["auc"]} for outcome in outcomes]


def _cells(outcome: Outcome) -> tuple[str, str]:
    auc, rates = outcome.metrics["auc"], {rate["fpr"]: rate["value"] for rate in outcome.metrics["tpr"]}
    found = "too few" if rates[0.01] is None else f"{rates[0.01]:.3f}"
    return f"{auc['value']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}]", found


def _example(run: Run) -> tuple[str, str]:
    """A question with as many held-out answers as possible: the disease with most phenotypes in client-0's test."""
    shard = run.shards[0]
    relation = shard.relations.id_of(RELATION)
    heads = [head for head, asked, _ in shard.test.tolist() if asked == relation]
    head, _ = Counter(heads).most_common(1)[0]
    return shard.entities[head], RELATION
