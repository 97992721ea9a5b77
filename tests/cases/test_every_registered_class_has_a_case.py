"""A registered name without a case fails here, and so does a registry without a kind of case."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.cases import concrete
from tests.cases.registered import KINDS, SOURCES, Kind

ROOT = Path(__file__).parents[2]
TABLES = {
    "DATASETS": "tests/graph/test_datasets.py",
    "DESIGNS": "tests/experiments/targets/test_drawing.py",
    "ENDINGS": "tests/runs/test_vectors.py",
    "EVENTS_OF": "tests/accounting/test_plans.py",
    "FORMATS": "tests/runs/test_vectors.py",
    "RULES": "tests/graph/test_split.py",
    "TRACKERS": "tests/trackers/test_trackers.py",
}
"""Registries of values and functions, and the test that goes over every entry."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.registry)
def test_every_registered_name_has_a_case(kind: Kind) -> None:
    import_module(kind.module)
    cases = list(concrete(kind.case))
    assert {case.name for case in cases} == set(kind.names)
    assert {case.__module__ for case in cases} == {kind.module}, "cases of one kind belong in one module"


def test_every_registry_has_a_kind_of_case() -> None:
    used = set()
    for path in SOURCES.rglob("*.py"):
        code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        used |= set(re.findall(r"\blook_up\(([A-Z_]+), ", code))
    assert used == {kind.registry for kind in KINDS if kind.registry.isupper()} | set(TABLES)


@pytest.mark.parametrize(("registry", "file"), TABLES.items())
def test_every_entry_of_a_table_is_tested(registry: str, file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"\b{registry}\b(?!,)[^\n]*", text.split("\n\n\n", 1)[1])
