"""What does a budget buy? Ways to train over data sets, models, budgets and seeds, beside counting.

`frontier` measures the rows that `recommended` is judged by. `tune` tries options of one row (--set, repeatable, with
several values after a comma) and ranks validation triples; take other data sets for it than those that are reported.
A cell is one federation of three clients by entity. Cells are lines of `benchmarks/results/utility/`, so an
interrupted sweep goes on where it stopped; what is there becomes its README.md and frontier.svg. With --attacks a cell
has 1,000 canaries, and the project's attacks are played: all of them on shared canaries; on likely ones those of the
server, and an audit. With --attacks real each of 3,000 real triples (1,000 on small graphs) is in or out by a coin, and
the shadow attack is played too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.utility.attacked import LIKELY, REAL, SHARED, attacked
from benchmarks.utility.counting import controls, mrrs
from benchmarks.utility.page import write_page
from benchmarks.utility.rows import ROWS, Cell, is_private
from fedkge import __version__
from fedkge.api.training import start
from fedkge.models import MODELS
from paper.grid import Lines, Store, Task, Tell, digest_of, watch_grid
from paper.watching import Rounds

RESULTS = Path(__file__).parent.parent / "results" / "utility"
DATA = ("fb15k-237", "nell-995", "codex-m", "ddb14", "demo")
TUNING_DATA = ("codex-s", "codex-people")
BUDGETS = (1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = (11, 12, 13)


def measure(cell: Cell, store: Store, runs: Path, validate: bool, tell: Tell) -> None:
    """Train, rank, attack if asked, and keep what came out."""
    tell("loading", 0.0)
    configuration, digest = cell.configuration(validate), digest_of(cell.settings(validate))
    began, out = time.perf_counter(), runs / f"utility-{digest}"
    shutil.rmtree(out, ignore_errors=True)  # of an interrupted cell
    run = start(configuration, None, out if cell.canaries else None, observer=Rounds(tell))
    tell("ranking and attacks" if cell.canaries else "ranking", 1.0)
    record = {
        "digest": digest,
        "data": cell.data,
        "model": cell.model,
        "row": cell.row,
        "epsilon": cell.epsilon,
        "seed": cell.seed,
        "options": dict(cell.options),
        "version": __version__,
        "configuration": configuration.updated(threads=0).changed_options(),
        "spent": max(run.epsilon().values()) if run.ledger else 0,
        "test": mrrs(run.metrics[-1]),
        **({"validation": mrrs(run.metrics[-2])} if validate else {"controls": controls(run)}),
        **({"canaries": cell.canaries, **attacked(run)} if cell.canaries else {}),
        "seconds": round(time.perf_counter() - began, 1),
    }
    store.add(cell.name, record)
    shutil.rmtree(out, ignore_errors=True)


def cells(options: argparse.Namespace, kind: str) -> Iterator[Cell]:
    """What is asked for; all rows and models of one seed come before the next seed."""
    data = options.data or (TUNING_DATA if kind == "tune" else DATA)
    rows = options.row or (["recommended"] if kind == "tune" else ["none", "isolated", "recommended"])
    seeds = options.seed or (SEEDS[:1] if kind == "tune" else SEEDS)
    for seed, name, row in itertools.product(seeds, data, rows):
        budgets = (options.epsilon or BUDGETS) if is_private(row) else (0.0,)
        for epsilon, model, chosen in itertools.product(budgets, options.model or MODELS, choices(options.set)):
            yield Cell(name, model, row, epsilon, seed, options.attacks, chosen)


def choices(settings: Sequence[str]) -> list[dict[str, Any]]:
    """All combinations of the values after each KEY=.

    >>> choices(["count-weight=1,2", "norm=1"])
    [{'count-weight': 1, 'norm': 1}, {'count-weight': 2, 'norm': 1}]
    """
    keys = [text.partition("=")[0] for text in settings]
    values = [[_value(part) for part in text.partition("=")[2].split(",")] for text in settings]
    return [dict(zip(keys, chosen, strict=True)) for chosen in itertools.product(*values)]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def main(kind: str, arguments: list[str]) -> int:
    """Measure the cells that are asked for and not there yet, then write the page."""
    options = _parser(kind).parse_args(arguments)
    folder, validate = (RESULTS / "tuning", True) if kind == "tune" else (RESULTS, False)
    store, there = Lines(folder), Lines(folder).digests()
    wanted = [] if options.show else list(cells(options, kind))
    left = [cell for cell in wanted if there.get(cell.name) != digest_of(cell.settings(validate))]
    tasks = [Task(cell.name, partial(measure, cell, store, options.runs, validate)) for cell in left]
    grid = watch_grid(tasks, options.workers)
    write_page(store, kind)
    print((folder / "README.md").read_text())
    for name, reason in grid.failed.items():
        print(f"{name} failed: {reason}", file=sys.stderr)
    return 1 if grid.failed else 0


def _parser(kind: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks utility {kind}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", action="append", help="repeat for several")
    parser.add_argument("--row", choices=sorted(ROWS), action="append")
    parser.add_argument("--model", choices=sorted(MODELS), action="append")
    parser.add_argument("--epsilon", type=float, action="append", help=f"default: {BUDGETS}")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE[,VALUE]", help="options of the row")
    parser.add_argument("--attacks", choices=(SHARED, LIKELY, REAL), default="", help="attack it, with such canaries")
    parser.add_argument("--workers", type=int, default=0, help="cells at a time; 0: one per core")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where attacked runs are kept meanwhile")
    parser.add_argument("--show", action="store_true", help="only write and print the page of what is there")
    return parser
