"""Another machine, as far as witnesses of ledgers go: one with a state folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@contextmanager
def another_machine() -> Iterator[Path]:
    """Within, nobody has seen any ledger yet; yields the empty state folder."""
    with TemporaryDirectory(prefix="fedkge-state-") as folder, pytest.MonkeyPatch.context() as patched:
        patched.setenv("FEDKGE_STATE", folder)
        yield Path(folder)
