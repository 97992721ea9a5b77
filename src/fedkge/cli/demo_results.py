"""What `fedkge demo` found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedkge.api.audits import sentences
from fedkge.api.predictions import Answer, predict
from fedkge.api.reports import NAMES, write_report
from fedkge.base.errors import RunError
from fedkge.cli.attack_tables import outcome_key
from fedkge.cli.budget import budget_record, budget_table
from fedkge.cli.metric_tables import cost_line, metric_rows, metric_table
from fedkge.cli.predict import answer_table
from fedkge.cli.tables import grid, print_line, say, stdout
from fedkge.experiments.outcomes import Outcome
from fedkge.experiments.recorded_audit import RunAudit
from fedkge.runs.run import Run

NONE = ("-", "-")
"""In place of an attack's numbers where the attack was not possible."""
RELATION = "has_phenotype"


@dataclass(frozen=True, slots=True)
class DemoResults:
    """Everything that the demo found."""

    together: Run
    alone: Run
    defended: Run
    found: list[Outcome]
    found_defended: list[Outcome]
    audit: RunAudit

    def record(self) -> dict[str, Any]:
        """The results for programs."""
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

    def show(self, notice: str) -> None:
        """The results for people."""
        console = stdout()
        shared, name = self.together.metrics[-1], self.together.embedding().scorer.name
        first, *others = metric_rows(shared, f"{name}, together", each=False)
        second = metric_rows(self.alone.metrics[-1], f"{name}, each alone", each=False)[0]
        epsilon = self.defended.configuration.privacy.epsilon
        third = metric_rows(self.defended.metrics[-1], f"{name}, together, epsilon {epsilon:g}", each=False)[0]
        console.print(metric_table([first, second, third, *others], "Held-out triples, ranked on both sides"))
        console.print(
            "Popularity only counts what is frequent. It is a control of the experimenter, and no budget pays for it. "
            "Each hospital has only about 8,000 triples, and privacy costs most on such small graphs. "
            f"{cost_line(self.together, shared)}\n"
        )
        console.print("A question to the open federation. `test` is held out and true, `new` is not in the graph.")
        console.print(answer_table(self._answer()))
        self._show_attacks()
        self._show_promise()
        console.print(notice)
        say(f"Next: fedkge predict {self.together.directory} --head Seizure --relation affects_system")

    def _show_attacks(self) -> None:
        console, targets = stdout(), self.together.configuration.experiment.canaries
        console.print(
            f"The attacks: before training, one coin per triple decided which of {targets:,} triples the first "
            "hospital keeps. How well does each adversary guess the coins? An AUC of 0.5 is guessing, 1 is certainty. "
            "The shadow attacks know every triple except the coins. They train two federations with other coins, to "
            "learn what to look for. A recipient gets the final model. An auditor sees the synthetic graph itself: "
            "nobody else does, but the guarantee holds against the auditor too. A client is asked only about the few "
            "triples among its own names."
        )
        before, after = (
            {(one.attack, one.adversary): _cells(one) for one in found} for found in (self.found, self.found_defended)
        )
        rows = [(*key, *before.get(key, NONE), *after.get(key, NONE)) for key in {**before, **after}]
        header = ("attack", "adversary", "AUC, open", "TPR@1%", "AUC, defended", "TPR@1%")
        console.print(grid("", header, rows, words=(0, 1)))

    def _show_promise(self) -> None:
        console, budget = stdout(), budget_record(self.defended)
        if budget:
            console.print(budget_table(budget))
        console.print(
            "A synthetic graph is made of randomised responses about likely triples. At this epsilon it reveals most "
            "of the real triples among them. If that is not acceptable, choose a smaller epsilon.\n"
        )
        console.print("The audit of the defended federation. System coins decided which triples it trains on:")
        for line in sentences(self.audit):
            console.print(f"  {line}")
        path, verdict = self._report()
        console.print(f"\n{verdict}", style="bold")
        print_line(f"The page for the owner of the data, with all of this: {path}")
        shareable = path.with_name(NAMES[False])
        print_line(f"The page that may be shared, with only what is public or paid for: {shareable}")

    def _report(self) -> tuple[Path, str]:
        """The path of the owner's page and its verdict; the shareable page is written beside it."""
        run, beside = _directory(self.defended), _directory(self.together)
        write_report(run, run / NAMES[False])
        document = write_report(run, run / NAMES[True], for_owner=True, beside=[beside])
        return run / NAMES[True], document.verdict.sentence

    def _answer(self) -> Answer:
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
