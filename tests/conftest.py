"""For all tests: a machine that is busy is no reason to fail."""

from __future__ import annotations

import os
from tempfile import mkdtemp

from hypothesis import settings

pytest_plugins = ["tests.short_runs"]

os.environ["FEDKGE_STATE"] = mkdtemp(prefix="fedkge-state-")  # not the user's own; commands started by tests follow it

settings.register_profile("fedkge", deadline=None)
settings.load_profile("fedkge")
