"""A grid over all cores: one process per task, and one account of how it goes."""

from __future__ import annotations

import multiprocessing
import queue
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits

from fedkge.base.errors import FedkgeError

LOOK_EVERY_SECONDS = 0.5
Tell: TypeAlias = Callable[[str, float], None]
"""Takes what is done now, and the share of it that is done."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something to measure in a process of its own, so `measure` must go through pickle; it writes the cells itself."""

    name: str
    measure: Callable[[Tell], None]
    estimated_seconds: float = 1.0


@dataclass
class Grid:
    """How far the grid is: what runs, what is done, what failed, and how much is left."""

    tasks: Sequence[Task]
    workers: int
    running: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """By name: what is done now, the share of it, and when it began."""
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def finished(self) -> int:
        """How many are over, one way or the other."""
        return len(self.done) + len(self.failed)

    def seconds_left(self) -> float | None:
        """By the estimates, corrected by how long what is done really took; None while nothing is done."""
        over = {*self.done, *self.failed}
        estimates = {task.name: task.estimated_seconds for task in self.tasks}
        passed = sum(estimates[name] for name in over)
        if not passed:
            return None
        now = time.monotonic()
        spent = (now - self.began) * self.workers - sum(now - begun for *_, begun in self.running.values())
        left = sum(seconds for name, seconds in estimates.items() if name not in over)
        ahead = left * max(0.1, spent) / passed - sum(now - begun for *_, begun in self.running.values())
        return max(0.0, ahead) / self.workers


def run_grid(tasks: Sequence[Task], workers: int, show: Callable[[Grid], None]) -> Grid:
    """Measure everything, the most important first; what fails is kept by name, and the rest goes on.

    An interruption costs at most what the running tasks did since they last kept something.
    """
    grid = Grid(tasks, workers)
    context = multiprocessing.get_context("spawn")  # threads of compiled code do not survive a fork
    with context.Manager() as manager, ProcessPoolExecutor(workers, mp_context=context) as pool:
        news = manager.Queue()
        futures = {pool.submit(_measure, task, news): task.name for task in tasks}
        try:
            waiting: set[Future[str]] = set(futures)
            while waiting:
                over, waiting = wait(waiting, timeout=LOOK_EVERY_SECONDS, return_when=FIRST_COMPLETED)
                _hear(grid, news)
                for future in over:
                    _note(grid, futures[future], future)
                show(grid)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return grid


def _measure(task: Task, news: Any) -> str:
    """In a process of its own; returns why it failed, or nothing."""
    try:
        with threadpool_limits(limits=1):  # one task per core
            task.measure(lambda what, share: news.put((task.name, what, share)))
    except FedkgeError as error:
        return str(error)
    except Exception:
        return traceback.format_exc(limit=-3)
    return ""


def _hear(grid: Grid, news: Any) -> None:
    for name, what, share in _drained(news):
        begun = grid.running[name][2] if name in grid.running else time.monotonic()
        grid.running[name] = (what, share, begun)


def _drained(news: Any) -> Iterable[tuple[str, str, float]]:
    while True:
        try:
            yield news.get_nowait()
        except queue.Empty:
            return


def _note(grid: Grid, name: str, future: Future[str]) -> None:
    grid.running.pop(name, None)
    reason = future.result() if future.exception() is None else f"its process died: {future.exception()}"
    if reason:
        grid.failed[name] = reason
    else:
        grid.done.append(name)
