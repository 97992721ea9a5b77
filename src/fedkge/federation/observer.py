"""Who wants to hear how a run goes: progress bars, logs, trackers. The base class hears and does nothing."""

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
    """Does nothing; override what you want to hear. `advance` is called from several threads."""

    def noticed(self, line: str) -> None:
        """Something that a person should know before the run begins, or goes on."""

    def begin(self, outlook: Outlook) -> None:
        """The run begins, or goes on."""

    def advance(self, triples: int) -> None:
        """So many more triples were trained."""

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """A round ended: number, loss, refused clients, bytes."""

    def recorded(self, run: Run, round_number: int) -> None:
        """A round went into the transcript; the run as it is now."""

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """A round was evaluated: the line that goes to metrics.jsonl."""

    def end(self, record: Mapping[str, Any]) -> None:
        """The run ended: the last line of metrics.jsonl."""


class Observers(Observer):
    """Tells several observers the same."""

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
