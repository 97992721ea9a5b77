"""Observers of a run: progress bars, logs, trackers. The base class does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedkge.runs.run import Run


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a run is about to do."""

    first_round: int
    rounds: int
    triples_per_round: int
    clients: Sequence[str]
    title: str


class Observer:
    """Does nothing. Override the methods that you need. `advance` is called from several threads."""

    def noticed(self, line: str) -> None:
        """A note for the user before the run begins or resumes."""

    def begin(self, outlook: Outlook) -> None:
        """The run begins or resumes."""

    def advance(self, triples: int) -> None:
        """Training has processed this many more triples."""

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """A round ended: number, loss, refused clients, bytes."""

    def recorded(self, run: Run, round_number: int) -> None:
        """A round was recorded in the transcript; `run` is the current state."""

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """A round was evaluated: the line that goes to metrics.jsonl."""

    def end(self, record: Mapping[str, Any]) -> None:
        """The run ended: the last line of metrics.jsonl."""


class Observers(Observer):
    """Passes each event to several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def noticed(self, line: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.noticed(line)

    def begin(self, outlook: Outlook) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.begin(outlook)

    def advance(self, triples: int) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.advance(triples)

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.round_done(facts)

    def recorded(self, run: Run, round_number: int) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.recorded(run, round_number)

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.evaluated(record)

    def end(self, record: Mapping[str, Any]) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.end(record)
