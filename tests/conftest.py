"""For all tests: a machine that is busy is no reason to fail, and nothing is written to the user's own folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

settings.register_profile("fedkge", deadline=None)
settings.load_profile("fedkge")


@pytest.fixture(scope="session", autouse=True)
def state_folder() -> Iterator[Path]:
    """Witnesses of ledgers are kept in a folder of this test session; processes that tests start inherit it."""
    with TemporaryDirectory(prefix="fedkge-state-") as folder, pytest.MonkeyPatch.context() as patched:
        patched.setenv("FEDKGE_STATE", folder)
        yield Path(folder)
        assert os.environ["FEDKGE_STATE"] == folder, "a test has changed the folder for those after it"
