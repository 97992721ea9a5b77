from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.reference.make_accounting import FILE


@pytest.fixture(scope="session", params=["own", "other"])
def reference(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Epsilons that fedkge did not compute: tests/reference, and a second file beside FEDKGE_DATA if there is one."""
    path = (
        FILE if request.param == "own" else Path(os.environ.get("FEDKGE_DATA", "-"), "..", "reference", "epsilon.json")
    )
    if request.param == "other" and not path.is_file():
        pytest.skip("compares with a second file of reference values, ../reference/epsilon.json from FEDKGE_DATA")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
