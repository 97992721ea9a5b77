from __future__ import annotations

import json
from typing import Any

import pytest

from tests.real_data import beside_data
from tests.reference.make_accounting import FILE

OTHER = beside_data("reference", "epsilon.json")


@pytest.fixture(scope="session", params=[FILE, *([OTHER] if OTHER else [])], ids=lambda path: path.parent.name)
def reference(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Epsilons that fedkge did not compute: tests/reference, and a second file beside FEDKGE_DATA if there is one."""
    found: dict[str, Any] = json.loads(request.param.read_text(encoding="utf-8"))
    return found
