"""Pages of the fixtures' runs: drawn once, for a page takes a second or two and always comes out the same."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from fedkge.report import gather, render


@functools.cache
def page_of(run: Path, copy: Any = "shareable") -> str:
    """The page of a run (that it comes out the same has a test of its own)."""
    return render(gather(run, copy))
