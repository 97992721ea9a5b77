"""Where the real graphs are: in the folder that FEDKGE_DATA names. Without it, tests that need one are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FEDKGE_DATA = os.environ.get("FEDKGE_DATA")
"""Read once, before a test sets it to a folder of its own."""


def data_folder(name: str) -> Path:
    """The folder of this data set, or a skipped test.

    A test that loads by name sets FEDKGE_DATA itself if another test may have changed it.
    """
    reason = absence(name)
    if reason:
        pytest.skip(reason)
    return Path(FEDKGE_DATA or "", name)


def absence(name: str) -> str:
    """Why this data set cannot be used here, or nothing if it can."""
    if not FEDKGE_DATA:
        return f"needs {name}: set FEDKGE_DATA to the folder that holds it"
    if not Path(FEDKGE_DATA, name).exists():
        return f"needs {name}: FEDKGE_DATA is set, but holds no {name}"
    return ""


def beside_data(*parts: str) -> Path | None:
    """A file that lies beside the folder of the data sets, if there is one."""
    path = Path(FEDKGE_DATA or "", "..", *parts)
    return path if FEDKGE_DATA and path.is_file() else None
