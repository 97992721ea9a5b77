"""How a run tells that it is alive: a bar in a terminal, log lines elsewhere, JSON lines for programs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from fedkge.base.durations import duration
from fedkge.cli.tables import print_json, stderr
from fedkge.federation.observer import Observer, Outlook

WATCHED = "both.realistic.mrr"
LOG_EVERY_SECONDS = 10.0
MOVE_EVERY_SECONDS = 0.1
WIDE_TERMINAL = 100


class Pace:
    """Triples done, triples per second and time left. The clock starts with the first triples: compiling is not work.

    >>> clock = iter([0.0, 2.0, 2.0])
    >>> pace = Pace(total=400, clock=lambda: next(clock))
    >>> pace.add(0); pace.add(100)
    >>> pace.rate(2.0), pace.seconds_left(2.0)
    (50.0, 6.0)
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.total = total
        self.done = 0
        self._clock = clock
        self._began: float | None = None
        self._lock = threading.Lock()

    def add(self, triples: int) -> None:
        """So many more; clients call this from their threads."""
        with self._lock:
            if self._began is None:
                self._began = self._clock()
            self.done += triples

    def rate(self, now: float) -> float:
        """Triples per second so far, pauses for validation included."""
        seconds = 0.0 if self._began is None else now - self._began
        return self.done / seconds if seconds > 0 else 0.0

    def seconds_left(self, now: float) -> float | None:
        """None while nothing is known."""
        rate = self.rate(now)
        return max(0, self.total - self.done) / rate if rate else None


def thousands(number: float) -> str:
    """A rate with as many digits as are worth reading.

    >>> thousands(941.2), thousands(107_624.0)
    ('941', '108k')
    """
    return f"{number:.0f}" if number < 10_000 else f"{number / 1000:.0f}k"


class Narrator(Observer):
    """Keeps what every kind of progress shows: round, rate, time left, loss, last MRR. Use it with `with`."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or stderr()
        self.pace = Pace(0)
        self.title, self.clients, self.rounds, self.round = "", 0, 0, 0
        self.mrr: float | None = None
        self.loss: float | None = None
        self.tests: Mapping[str, Mapping[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Put the terminal back in order."""

    def noticed(self, line: str) -> None:
        """Say it."""
        self.note(line)

    def begin(self, outlook: Outlook) -> None:
        """Remember what lies ahead."""
        left = max(0, outlook.rounds - outlook.first_round + 1)
        self.pace = Pace(left * outlook.triples_per_round)
        self.title, self.clients = outlook.title.partition(",")[0], len(outlook.clients)
        self.rounds, self.round = outlook.rounds, outlook.first_round - 1

    def advance(self, triples: int) -> None:
        """Count."""
        self.pace.add(triples)

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """Remember, and name the clients that were left out."""
        self.round, self.loss, self.tests = facts["round"], facts["loss"], facts.get("tests", {})
        for client, reason in facts["refused"].items():
            self.note(f"round {self.round}: {client} was left out: {reason}")

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """Remember."""
        self.mrr = record[WATCHED]

    def note(self, line: str) -> None:
        """A line that stays."""
        self.console.print(line, markup=False, soft_wrap=True)

    def figures(self) -> list[str]:
        """Rate, time left, loss, MRR, tests of a private selection: as far as known."""
        now = time.perf_counter()
        parts = [f"{thousands(self.pace.rate(now))} triples/s", f"{duration(self.pace.seconds_left(now))} left"]
        if self.loss is not None:
            parts.append(f"loss {self.loss:.3f}")
        if self.mrr is not None:
            parts.append(f"MRR {self.mrr:.3f}")
        if self.tests:
            made, passed = (sum(counts[what] for counts in self.tests.values()) for what in ("made", "passed"))
            parts.append(f"tests passed {passed:,} of {made:,}")
        return parts


class Bar(Narrator):
    """A live bar for a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        bar = BarColumn(bar_width=10 if self.console.width < WIDE_TERMINAL else 30)
        columns = (
            TextColumn("{task.description}", markup=False),
            bar,
            TextColumn("{task.fields[figures]}", markup=False),
        )
        self._bar = Progress(*columns, console=self.console, transient=True, refresh_per_second=8)
        self._task: TaskID | None = None
        self._moved = 0.0

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def begin(self, outlook: Outlook) -> None:
        """Show the bar."""
        super().begin(outlook)
        self._task = self._bar.add_task(f"{self.title}: preparing", total=self.pace.total or None, figures="")
        self._bar.start()

    def advance(self, triples: int) -> None:
        """Move the bar, ten times per second at most."""
        super().advance(triples)
        if time.perf_counter() - self._moved > MOVE_EVERY_SECONDS:
            self._move()

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """Move the bar."""
        super().round_done(facts)
        self._move()

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """Show the new MRR."""
        super().evaluated(record)
        self._move()

    def end(self, record: Mapping[str, Any]) -> None:  # noqa: ARG002
        """No bar any more."""
        self.stop()

    def _move(self) -> None:
        if self._task is None:
            return
        self._moved = time.perf_counter()
        doing = f"round {self.round + 1}/{self.rounds}" if self.round < self.rounds else "ranking"
        self._bar.update(
            self._task,
            completed=self.pace.done,
            description=f"{self.title}: {doing}",
            figures="  ".join(self.figures()),
        )


class Log(Narrator):
    """Plain lines where there is no terminal: every evaluated round, and otherwise every ten seconds."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._logged = 0.0

    def begin(self, outlook: Outlook) -> None:
        """Say what begins."""
        super().begin(outlook)
        self._logged = time.perf_counter()
        if self.round < self.rounds:
            clients = f", {self.clients} clients" if self.clients > 1 else ""
            self.note(f"{self.title}{clients}: rounds {self.round + 1} to {self.rounds}")

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """A line when the last one is old."""
        super().round_done(facts)
        if time.perf_counter() - self._logged >= LOG_EVERY_SECONDS:
            self._log()

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """A line."""
        super().evaluated(record)
        self._log()

    def _log(self) -> None:
        self._logged = time.perf_counter()
        self.note(", ".join([f"round {self.round}/{self.rounds}", *self.figures()]))


class JsonLines(Observer):
    """One line on stdout per evaluated round: the line of metrics.jsonl. The last line is the verb's."""

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """Print it."""
        print_json(record)


def narrator() -> Narrator:
    """A bar in a terminal, log lines elsewhere."""
    console = stderr()
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else Log(console)
