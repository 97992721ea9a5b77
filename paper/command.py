"""What `fedkge reproduce` does: plan, measure what is missing, show how it goes, write the page."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.base.durations import duration
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.base.machine import available_cores
from fedkge.cli.tables import grid as table_grid
from fedkge.cli.tables import print_json, say, stderr, stdout
from fedkge.graph.datasets import load
from paper.cost import estimated_seconds
from paper.document import gather
from paper.measure import Places
from paper.page import write_reproduction
from paper.plan import Work, measured, wanted, works
from paper.schedule import Grid, run_grid
from paper.settings import Settings, default_folder

if TYPE_CHECKING:
    from rich.console import RenderableType

LOG_EVERY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks for on the command line."""

    parts: tuple[str, ...]
    quick: bool
    out: Path
    runs: Path
    settings: Path | None
    workers: int
    plan_only: bool
    page_only: bool
    keep_runs: bool
    as_json: bool


def reproduce(request: Request) -> None:
    """Measure what is asked for and missing, then write the page."""
    chosen = Settings(request.settings or default_folder(), request.quick)
    keys = wanted(chosen, request.parts)
    everything = works(chosen, keys)
    left = [work for work in everything if work.pending(request.out)]
    workers = request.workers or available_cores()
    say(f"{len(keys)} cells of {len(everything)} federations; {len(left)} federations are left to train.")
    if request.plan_only:
        _show_plan(left, workers, request.as_json)
        return
    failed = {} if request.page_only else _measure(left, request, workers)
    written = _write_page(chosen, request.out)
    if request.as_json:
        print_json({"cells": len(keys), "failed": failed, "written": [str(path) for path in written]})
    else:
        _show_end(written, failed)
    if failed:
        raise RunError(f"{len(failed)} of {len(left)} federations failed: {', '.join(failed)}; call it again to retry")


def _measure(left: Sequence[Work], request: Request, workers: int) -> dict[str, str]:
    if not left:
        return {}
    for data in dict.fromkeys(work.configuration.data for work in left):
        load(data)  # a missing data set is an error of its own, with how to get it, before anything begins
    began = time.monotonic()
    places = Places(request.runs, request.out, command(), request.keep_runs)
    with GridView(len(left)) as show:
        grid = run_grid(left, places, min(workers, len(left)), show)
    say(f"{len(grid.done)} federations in {duration(time.monotonic() - began)} on {workers} cores.")
    return grid.failed


def command() -> str:
    """How the program was called, without where things are kept."""
    kept, skip = ["fedkge"], False
    for word in sys.argv[1:]:
        if skip or word in ("--out", "--runs", "--settings"):
            skip = not skip
            continue
        if not word.startswith(("--out=", "--runs=", "--settings=")):
            kept.append(word)
    return " ".join(kept)


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
    """One bar for everything, and one line per federation that is running."""
    from rich.console import Group  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    total = len(grid.works)
    head = Table.grid(padding=(0, 1))
    failed = f", {len(grid.failed)} failed" if grid.failed else ""
    counted = f"{grid.finished} of {total} federations{failed}"
    passed = duration(time.monotonic() - grid.began)
    head.add_row(
        ProgressBar(total, grid.finished, width=30), counted, f"{passed} so far, {duration(grid.seconds_left())} left"
    )
    rows = Table.grid(padding=(0, 1))
    for name, (what, share, begun) in grid.running.items():
        cells = (name.rpartition("-")[0], what, duration(time.monotonic() - begun))
        rows.add_row(
            ProgressBar(1.0, share, width=12), *(Text(cell, overflow="ellipsis", no_wrap=True) for cell in cells)
        )
    return Group(head, rows)


def _show_plan(left: Sequence[Work], workers: int, as_json: bool) -> None:

    seconds = {work.name: estimated_seconds(work) for work in left}
    if as_json:
        print_json({"federations": seconds, "seconds": sum(seconds.values()), "workers": workers})
        return
    rows = [(name, duration(value)) for name, value in seconds.items()]
    stdout().print(table_grid("Federations that are left", ("federation", "about"), rows, words=(0,)))
    stdout().print(f"About {duration(sum(seconds.values()) / workers)} on {workers} cores.")


def _write_page(settings: Settings, out: Path) -> list[Path]:

    cells = measured(settings, out)
    if not cells:
        raise ConfigurationError(f"{out}: no cell has been measured here yet, so there is no page to write")
    return write_reproduction(gather(settings, cells), out)


def _show_end(written: Sequence[Path], failed: dict[str, Any]) -> None:
    for name, reason in failed.items():
        say(f"{name} failed: {reason}")
    for path in written:
        if path.suffix == ".html":
            stdout().print(str(path), soft_wrap=True)
