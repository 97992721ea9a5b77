"""`fedkge reproduce`: the paper's tables and figures again, as published and sound, beside its own numbers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.durations import duration
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.cli.tables import grid as table_grid
from fedkge.cli.tables import print_json, say, stderr, stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from fedkge.reproduction.plan import Work
    from fedkge.reproduction.schedule import Grid
    from fedkge.reproduction.settings import Settings

EXAMPLE = "Example: fedkge reproduce table-attacks --quick"
LOG_EVERY_SECONDS = 30.0
PARTS_HELP = (
    "all, or any of table-attacks, table-utility, figure-rounds, figure-defence, figure-tradeoff; or one cell, like "
    "fb15k-237.transe.sound.recommended.e16.s11"
)


def reproduce(
    parts: Annotated[list[str] | None, typer.Argument(metavar="PART...", help=PARTS_HELP, show_default="all")] = None,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="A sub-graph in minutes, or everything in hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Cells (JSON) and the page; what is there is not measured again.",
            show_default="results, or results/quick",
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Run directories while they are needed.")] = Path("runs/reproduction"),
    settings: Annotated[
        Path | None, typer.Option(help="Folder with the settings of every part.", show_default="fedkge's own")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Federations at a time; 0: one per core.")] = 0,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Say what would be done, and how long; do nothing.")
    ] = False,
    page_only: Annotated[bool, typer.Option("--page", help="Write the page from the cells that are there.")] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Keep run directories with their transcripts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Regenerate the paper's tables and figures, beside its own numbers, with what differs and why.

    Two columns everywhere: as published, and sound. Stop it at any time: called again, it goes on where it stopped.
    """
    from fedkge.reproduction.plan import wanted, works  # noqa: PLC0415 (heavy)
    from fedkge.reproduction.settings import Settings, default_folder  # noqa: PLC0415

    chosen = Settings(settings or default_folder(), quick)
    out = out or Path("results/quick" if quick else "results")
    keys = wanted(chosen, parts or ["all"])
    everything = works(chosen, keys)
    left = [work for work in everything if work.pending(out)]
    say(f"{len(keys)} cells of {len(everything)} federations; {len(left)} federations are left to train.")
    if plan_only:
        _show_plan(left, workers or _cores(), as_json)
        return
    failed = {} if page_only else _measure(left, out, runs, workers or _cores(), keep_runs)
    written = _write_page(chosen, out)
    if as_json:
        print_json({"cells": len(keys), "failed": failed, "written": [str(path) for path in written]})
    else:
        _show_end(written, failed)
    if failed:
        raise RunError(f"{len(failed)} of {len(left)} federations failed: {', '.join(failed)}; call it again to retry")


def _cores() -> int:
    from fedkge.base.machine import available_cores  # noqa: PLC0415

    return available_cores()


def _measure(left: Sequence[Work], out: Path, runs: Path, workers: int, keep_runs: bool) -> dict[str, str]:
    from fedkge.graph.datasets import load  # noqa: PLC0415 (heavy)
    from fedkge.reproduction.measure import Places  # noqa: PLC0415
    from fedkge.reproduction.schedule import run_grid  # noqa: PLC0415

    if not left:
        return {}
    for data in dict.fromkeys(work.configuration.data.source for work in left):
        load(data)  # a missing data set is an error of its own, with how to get it, before anything begins
    began = time.monotonic()
    places = Places(runs, out, command(), keep_runs)
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
    from fedkge.reproduction.cost import estimated_seconds  # noqa: PLC0415

    seconds = {work.name: estimated_seconds(work) for work in left}
    if as_json:
        print_json({"federations": seconds, "seconds": sum(seconds.values()), "workers": workers})
        return
    rows = [(name, duration(value)) for name, value in seconds.items()]
    stdout().print(table_grid("Federations that are left", ("federation", "about"), rows, words=(0,)))
    stdout().print(f"About {duration(sum(seconds.values()) / workers)} on {workers} cores.")


def _write_page(settings: Settings, out: Path) -> list[Path]:
    from fedkge.report.reproduction import write_reproduction  # noqa: PLC0415
    from fedkge.reproduction.document import gather  # noqa: PLC0415
    from fedkge.reproduction.plan import measured  # noqa: PLC0415

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
