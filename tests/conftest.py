"""For all tests: a machine that is busy is no reason to fail."""

from __future__ import annotations

import os
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.cases")
pytest_plugins = ["tests.short_runs"]

os.environ["FEDKGE_STATE"] = mkdtemp(prefix="fedkge-state-")  # not the user's own; commands started by tests follow it

INHERITED = [HealthCheck.differing_executors]
"""A property of an abstract case (tests/cases) runs for each of its subclasses."""
settings.register_profile("fedkge", deadline=None, suppress_health_check=INHERITED)
settings.load_profile("fedkge")
