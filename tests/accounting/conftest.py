from __future__ import annotations

import json
from typing import Any

import pytest

from tests.real_data import beside_data
from tests.reference.make_accounting import FILE


@pytest.fixture(scope="session", params=["own", "other"])
def reference(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Epsilons that fedkge did not compute: tests/reference, and a second file beside FEDKGE_DATA if there is one."""
    path = FILE if request.param == "own" else beside_data("reference", "epsilon.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
