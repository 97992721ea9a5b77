"""Several runs side by side: privacy cost, leakage and utility."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedkge.audit.metrics import Estimate, RateAtFpr
from fedkge.base.errors import ConfigurationError
from fedkge.base.numbers import share
from fedkge.base.tabular import Row, Tabular
from fedkge.report.document import Document, FigureText, UtilityRow
from fedkge.report.gather import gather
from fedkge.report.utility import PRIVATE_CONTROL
from fedkge.report.verdict import strongest

FORMAT = 1
PLANE = "plane"
FOR_OWNER = "For the owner of the data only: these figures come from private triples, and no budget paid for them."


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One line of the comparison; what was not measured is None."""

    number: int
    name: str
    model: str
    strategy: str
    defence: str
    defended: bool
    promised: float | None
    epsilon: float | None
    delta: float | None
    bound: float | None
    ceiling: float | None
    verdict: str
    attack: str
    adversary: str
    design: str
    auc: Estimate | None
    tpr: RateAtFpr | None
    tail: float | None
    head: float | None
    both: float | None
    gain: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """Runs, the controls of the first one, and what makes them hard to compare."""

    format: int
    runs: tuple[ComparedRun, ...]
    controls: tuple[UtilityRow, ...]
    notes: tuple[str, ...]
    figure: FigureText

    shown: ClassVar[Mapping[str, str]] = {
        "run": "run",
        "model": "model",
        "defence": "defence",
        "epsilon": "claimed",
        "bound": "proven",
        "attack": "attack",
        "auc": "AUC",
        "both": "both MRR",
        "gain": "gain",
    }

    def title(self) -> str:
        """How many runs there are, and what makes them hard to compare."""
        return " ".join([f"{len(self.runs)} runs.", *self.notes])

    def rows(self) -> list[Row]:
        """One row per run; what was not measured is None."""
        return [
            {
                "run": run.name,
                "model": run.model,
                "strategy": run.strategy,
                "defence": run.defence,
                "promised": run.promised,
                "epsilon": run.epsilon,
                "delta": run.delta,
                "bound": run.bound,
                "ceiling": run.ceiling,
                "verdict": run.verdict,
                "attack": run.attack,
                "adversary": run.adversary,
                "design": run.design,
                "auc": run.auc.value if run.auc else None,
                "tpr": run.tpr.value if run.tpr else None,
                "tail": run.tail,
                "head": run.head,
                "both": run.both,
                "gain": run.gain,
            }
            for run in self.runs
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """As one line of JSON."""
        return json.dumps(self.as_dict(), allow_nan=False)


def compare(runs: Sequence[Path]) -> Comparison:
    """Gather every run and put them side by side, in the given order: exact figures, for the owner of the data."""
    if len(runs) < 2:
        raise ConfigurationError(f"a comparison needs at least two runs, got {len(runs)}")
    documents = [gather(run, "for-owner") for run in runs]
    rows = tuple(_compared(number, document) for number, document in enumerate(documents, start=1))
    controls = tuple(row for row in documents[0].utility.rows if row.kind == "control")
    return Comparison(FORMAT, rows, controls, _notes(documents), _plane_text(rows, controls))


def _compared(number: int, document: Document) -> ComparedRun:
    best = strongest(document.attacks.rows)
    supported = [rate for rate in best.tpr if rate.value is not None] if best else []
    own = document.utility.rows[0] if document.utility.rows else None
    bound = document.audit.largest
    return ComparedRun(
        number=number,
        name=document.run.name,
        model=document.run.model,
        strategy=document.run.strategy,
        defence=document.run.defence,
        defended=document.run.defended,
        promised=document.claim.promised,
        epsilon=document.claim.epsilon,
        delta=document.claim.delta,
        bound=bound.epsilon if bound else None,
        ceiling=document.audit.ceiling,
        verdict=document.verdict.kind,
        attack=best.attack if best else "",
        adversary=best.adversary if best else "",
        design=best.design if best else "",
        auc=best.auc if best else None,
        tpr=min(supported, key=lambda rate: rate.fpr) if supported else None,
        tail=own.tail if own else None,
        head=own.head if own else None,
        both=own.both if own else None,
        gain=document.utility.gain,
    )


def _notes(documents: Sequence[Document]) -> tuple[str, ...]:
    notes = [FOR_OWNER]
    first = documents[0]
    options = [dict(document.method.configuration) for document in documents]
    for key in ("data", "clients", "split", "overlap", "seed"):
        values = {str(option.get(key)) for option in options}
        if len(values) > 1:
            shown = "" if key == "seed" else f" ({', '.join(sorted(values))})"
            notes.append(f"The runs differ in {key}{shown}: compare with care.")
    sets = {
        frozenset((row.attack, row.adversary, row.design) for row in document.attacks.rows) for document in documents
    }
    if len(sets) > 1:
        notes.append("The runs were not all attacked in the same ways. The strongest attack may be missing for some.")
    if any(control.name == PRIVATE_CONTROL for control in first.utility.rows):
        notes.append(f"The gain is the both-sided MRR minus that of the control {PRIVATE_CONTROL!r} of the same run.")
    notes.append(
        "The strongest attack has the highest corrected lower end on canaries (designs C and R) after the last round."
    )
    return tuple(notes)


def _plane_text(runs: Sequence[ComparedRun], controls: Sequence[UtilityRow]) -> FigureText:
    placed = [run for run in runs if run.both is not None and run.auc is not None]
    points = "; ".join(f"{run.number}: MRR {share(run.both)}, AUC {share(run.auc.value)}" for run in placed if run.auc)
    lines = "; ".join(f"{control.name}: MRR {share(control.both)}" for control in controls)
    return FigureText(
        PLANE,
        "Utility and defence",
        f"The strongest attack's AUC against both-sided MRR, a point per run. {points or 'No run has both.'} "
        f"Vertical lines: {lines or 'none'}.",
        "Runs on the right are useful, runs at the bottom are private. The dotted line is guessing. A run on the left "
        "of the popularity lines does not justify any privacy cost.",
    )
