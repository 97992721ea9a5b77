"""A registered name without a case fails here, and so does a registry without a kind of case."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import fedkge
from tests.cases import concrete
from tests.cases.registered import KINDS, Kind

SOURCES = Path(fedkge.__file__).parent
TABLES = {
    "DATASETS": "entries of the catalogue; tests/graph/test_datasets.py loads each of them",
}
"""Registries of values that need no case, and why."""
PENDING = {"ACCOUNTANTS", "ATTACKS", "DEFENCES", "DESIGNS", "ENDINGS", "EVENTS_OF", "FORMATS", "RULES", "SELECTIONS"}
PENDING |= {"STRATEGIES", "TRACKERS"}


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
    assert used - PENDING == {kind.registry for kind in KINDS} | set(TABLES)
