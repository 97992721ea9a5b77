from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "epsilon.json"


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """Epsilons computed by the named libraries and by independent scripts."""
    if not REFERENCE.is_file():
        pytest.skip(f"the reference values are not at {REFERENCE}")
    return json.loads(REFERENCE.read_text(encoding="utf-8"))
