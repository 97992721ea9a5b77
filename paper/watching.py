"""Look at a federation in the middle of its training: how well it ranks at the rounds where budgets end."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedkge.defences import chosen_defence
from fedkge.evaluation import Evaluation, weighted_metrics
from fedkge.federation.observer import Observer, Outlook
from fedkge.runs.run import Run
from fedkge.store.durable_files import write_atomically
from paper.grid import Tell

LOOKED = "looked.json"
SIDES, METRICS = ("tail", "head", "both"), ("mrr", "hits_at_1", "hits_at_10")
Look = Mapping[str, Any]


class Rounds(Observer):
    """Says which round is done, and what share of the training that is."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._rounds = tell, 1

    def begin(self, outlook: Outlook) -> None:
        """Remember how far there is to go."""
        self._rounds = outlook.rounds

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """Say so."""
        self._tell(f"round {facts['round']} of {self._rounds}", facts["round"] / self._rounds)


class Watch(Rounds):
    """Keeps, in the run directory, what was seen at each recorded round and how long training took so far."""

    def __init__(self, folder: Path, tell: Tell) -> None:
        super().__init__(tell)
        self._path, self._began = folder / LOOKED, time.perf_counter()
        kept = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        self._before: float = kept.get("seconds", 0.0)
        self._looks: dict[str, Look] = kept.get("rounds", {})

    @property
    def seconds(self) -> float:
        """Of training, with what earlier attempts took until their last look."""
        return self._before + time.perf_counter() - self._began

    def recorded(self, run: Run, round_number: int) -> None:
        """Rank now, because the model of this round is not kept."""
        if chosen_defence(run.configuration).keeps_ledger:
            self._looks[str(round_number)] = look(run)
            self._keep()

    def at(self, round_number: int) -> Look | None:
        """What was seen at this round."""
        return self._looks.get(str(round_number))

    def _keep(self) -> None:
        content = {"seconds": round(self.seconds, 1), "rounds": self._looks}
        write_atomically(self._path, json.dumps(content).encode())


def look(run: Run) -> Look:
    """Utility and controls: of all test triples, and of those whose names occur in their client's training triples."""
    everything = run.evaluate("test", threads=1)
    unseen = any(one.unseen for one in everything.values())
    seen = run.evaluate("test", threads=1, seen_only=True) if unseen else everything
    names = next(iter(everything.values())).controls
    return {
        "utility": {"all": _mean(everything), "seen": _mean(seen)},
        "controls": {name: {"all": _mean(everything, name), "seen": _mean(seen, name)} for name in names},
    }


def _mean(evaluations: Mapping[str, Evaluation], control: str = "") -> dict[str, float]:
    rankings = [one.controls[control] if control else one.ranking for one in evaluations.values()]
    metrics = weighted_metrics([(len(one.triples), one.metrics()) for one in rankings])
    return {f"{side}.{name}": round(metrics[f"{side}.realistic.{name}"], 5) for side in SIDES for name in METRICS}
