"""A grid as a person sees it: a live view in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedkge.base.durations import duration
from fedkge.base.machine import available_cores
from fedkge.cli.tables import say, stderr
from paper.grid.schedule import Grid, Task, run_grid

if TYPE_CHECKING:
    from rich.console import RenderableType

LOG_EVERY_SECONDS = 30.0


def watch_grid(tasks: Sequence[Task], workers: int = 0) -> Grid:
    """Carry a grid out and show how it goes; without a number of workers, one task per core at a time."""
    most = min(workers or available_cores(), len(tasks))
    if not tasks:
        return Grid(tasks, most)
    with GridView(len(tasks)) as show:
        return run_grid(tasks, most, show)


class GridView:
    """Shows a grid as it goes: a live view in a terminal, a line now and then elsewhere."""

    def __init__(self, total: int) -> None:
        from rich.live import Live  # noqa: PLC0415

        self._total, self._last, self._told = total, 0.0, 0
        console = stderr()
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None

    def __enter__(self) -> GridView:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, grid: Grid) -> None:
        """The grid as it is now."""
        if self._live:
            self._live.update(picture(grid))
            return
        for name in grid.done[self._told :]:
            say(f"{name}: done ({grid.finished} of {self._total}, about {duration(grid.seconds_left())} left)")
        self._told = len(grid.done)
        if time.monotonic() - self._last > LOG_EVERY_SECONDS:
            self._last = time.monotonic()
            for name, (what, share, _) in grid.running.items():
                say(f"  {name}: {what} ({100 * share:.0f} %)")


def picture(grid: Grid) -> RenderableType:
    """One bar for everything, and one line per task that is running."""
    from rich.console import Group  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    total = len(grid.tasks)
    head = Table.grid(padding=(0, 1))
    failed = f", {len(grid.failed)} failed" if grid.failed else ""
    counted = f"{grid.finished} of {total} tasks{failed}"
    passed = duration(time.monotonic() - grid.began)
    head.add_row(
        ProgressBar(total, grid.finished, width=30), counted, f"{passed} so far, {duration(grid.seconds_left())} left"
    )
    rows = Table.grid(padding=(0, 1))
    for name, (what, share, begun) in grid.running.items():
        cells = (name, what, duration(time.monotonic() - begun))
        rows.add_row(
            ProgressBar(1.0, share, width=12), *(Text(cell, overflow="ellipsis", no_wrap=True) for cell in cells)
        )
    return Group(head, rows)
