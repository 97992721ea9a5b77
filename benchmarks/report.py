"""What every measurement needs: facts about the machine, memory, tables on the screen, JSON beside the code."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("fedkge", "numba", "numpy", "opacus", "pykeen", "torch")


def environment() -> dict[str, Any]:
    """When, where and with what something was measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "commit": _commit(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "load": load_average(),
    }


def _commit() -> str:
    command = ["git", "-C", str(RESULTS.parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu_name() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def load_average() -> float:
    """How many processes wanted to run in the last minute."""
    return round(os.getloadavg()[0], 2)


def peak_memory() -> int:
    """The most bytes that this process has held so far.

    Linux's own high-water mark, because `ru_maxrss` of a child also counts what its parent held when it forked.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory_now() -> int:
    """The bytes that this process holds now (as far as the system tells; else its peak)."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmRSS"):
                return 1024 * int(line.split()[1])
    return peak_memory()


def reset_peak() -> None:
    """Let `peak_memory` begin anew with what is held now; Linux only, elsewhere nothing happens."""
    marks = Path("/proc/self/clear_refs")
    if marks.exists():
        marks.write_text("5")


def call_module(module: str, *arguments: str) -> Any:
    """Run `python -m module` in a process of its own; returns the JSON on the last line of its output."""
    root = str(RESULTS.parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def save(name: str, result: Mapping[str, Any]) -> Path:
    """Write one measurement, with the facts about the machine first."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**environment(), **result}, indent=1) + "\n", encoding="utf-8")
    return path


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The median of some repeats, and the repeats."""
    return {"median": round(median(values), 4), "repeats": [round(value, 4) for value in values]}


def show(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: the first column is text, the others are numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def verdict(measured: float, required: float) -> str:
    """A ratio beside what is required of it."""
    return f"{measured:.1f}x {'≥' if measured >= required else '[bold red]<[/]'} {required:g}"
