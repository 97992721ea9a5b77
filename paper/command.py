"""What `fedkge reproduce` does: plan, measure what is missing, show how it goes, write the page."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fedkge.base.durations import duration
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.base.machine import available_cores
from fedkge.cli.tables import grid as table_grid
from fedkge.cli.tables import print_json, say, stdout
from fedkge.graph.datasets import load
from paper.cost import estimated_seconds
from paper.document import gather
from paper.grid import Task, watch_grid
from paper.measure import Places, measure
from paper.page import write_reproduction
from paper.plan import Work, measured, wanted, works
from paper.settings import Settings, default_folder


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
    for data in dict.fromkeys(work.configuration.data.source for work in left):
        load(data)  # a missing data set is an error of its own, with how to get it, before anything begins
    began = time.monotonic()
    places = Places(request.runs, request.out, command(), request.keep_runs)
    grid = watch_grid(
        [Task(work.name, partial(measure, work, places), estimated_seconds(work)) for work in left], workers
    )
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
