"""How large the report of a defended 100-round run with five attacks and an audit is, and how long it takes to make."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import save, show, spread

ROUNDS = 100
ATTACKS = ("upload-difference", "si-centres", "cip", "cip-distance-ratio", "trajectory")
LARGEST_BYTES, LONGEST_SECONDS = 500_000, 10.0


def fedkge(*arguments: object) -> tuple[float, float]:
    """Run the command line in a process of its own; wall-clock and CPU seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", "from fedkge.cli import main; main()", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def prepare(run: Path) -> None:
    """A real run on the demo graph at epsilon 8, audited and attacked in five ways."""
    federation = ("--data", "demo", "--clients", 3, "--split", "entity", "--rounds", ROUNDS, "--epsilon", 8)
    recorded = ("--evaluate-every", 0, "--record", "every:5", "--canaries", 1000, "--canary-coins", "independent")
    named = [option for name in ATTACKS for option in ("--attack", name)]
    fedkge("train", *federation, *recorded, "--out", run)
    fedkge("audit", run, "--attack", "upload-difference", "--attack", "cip")
    fedkge("attack", run, *named, "--targets-count", 300)


def main(arguments: list[str]) -> int:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report_page", description=__doc__)
    parser.add_argument("--run", type=Path, help="a run that is already trained, attacked and audited")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "run"
        if options.run is None:
            prepare(run)
        page = Path(folder) / "page" / "report.html"
        times = [fedkge("report", run, "--out", page) for _ in range(options.repeats)]
        sizes = {file.name: file.stat().st_size for file in (page, page.with_suffix(".json"))}
    result: dict[str, Any] = {
        "bytes": sizes,
        "wall_seconds": spread([wall for wall, _ in times]),
        "cpu_seconds": spread([cpu for _, cpu in times]),
        "required": {"page_bytes": LARGEST_BYTES, "seconds": LONGEST_SECONDS},
    }
    cpu = result["cpu_seconds"]["median"]
    rows = [
        ("page", f"{sizes['report.html']:,} bytes", f"< {LARGEST_BYTES:,}"),
        ("JSON", f"{sizes['report.json']:,} bytes", "-"),
        ("CPU time of `fedkge report`", f"{cpu:.1f} s", f"< {LONGEST_SECONDS:g}"),
        ("wall-clock time", f"{result['wall_seconds']['median']:.1f} s", "-"),
    ]
    show(f"Report of a run of {ROUNDS} rounds with {len(ATTACKS)} attacks", ("", "measured", "required"), rows)
    if not options.no_save:
        save("report_page", result)
    return int(sizes["report.html"] >= LARGEST_BYTES or cpu >= LONGEST_SECONDS)
