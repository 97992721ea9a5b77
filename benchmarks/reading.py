"""Reading in linear time: CPU seconds for files of 32, 64 and 128 MiB of the worst content, plain and compressed.

A file of twice the size must take about twice as long. Before, 128 MiB of line ends took 5.8 seconds, because what was
held was joined with each block; a compressed file of 0.3 MB took more than 100.
"""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedkge.graph.limits import LARGEST_EXPANSION, LONGEST_LINE
from fedkge.graph.streams import line_blocks

MEGABYTE = 2**20
SIZES = (32, 64, 128)
CONTENTS = {"line ends": b"\n", "one line": b"x", "triples": b"alpha\tlikes\tbeta\n"}
WRITERS: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".xz": lzma.open}
MOST_RATIO = 3.0
"""Doubling the size of a quadratic reader's input quadruples its time."""


def main(_: list[str]) -> int:
    """Print CPU seconds by size and the ratio of the last two sizes; 1 if a ratio is far above 2."""
    os.environ[LONGEST_LINE] = os.environ[LARGEST_EXPANSION] = str(2**40)
    worst = 0.0
    print(f"{'content':12}{'file':6}" + "".join(f"{size:>8} MiB" for size in SIZES) + "   ratio")
    with tempfile.TemporaryDirectory() as folder:
        for what, unit in CONTENTS.items():
            for suffix in WRITERS:
                seconds = [_seconds(Path(folder, f"graph.tsv{suffix}"), unit, size) for size in SIZES]
                ratio = seconds[-1] / seconds[-2]
                worst = max(worst, ratio)
                print(f"{what:12}{suffix or 'plain':6}" + "".join(f"{one:12.2f}" for one in seconds) + f"{ratio:8.1f}")
    return int(worst > MOST_RATIO)


def _seconds(path: Path, unit: bytes, size: int) -> float:
    with WRITERS[path.suffix if path.suffix in WRITERS else ""](path, "wb") as file:
        for _ in range(size):
            file.write(unit * (MEGABYTE // len(unit)))
    began = time.process_time()
    for _ in line_blocks(path):
        pass
    return time.process_time() - began
