"""The contract of `tests/layers.py` holds: no import goes up, sideways, or round in a circle."""

from __future__ import annotations

import pytest

from tests.layers import PAGE, ROOMS, SOURCE, Import, allowed, imports, page


def test_every_import_is_in_the_contract():
    broken = [str(one) for one in imports() if not allowed(ROOMS, one)]
    assert not broken, "\n".join(broken)


def test_every_room_is_in_the_contract():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == {room.name for room in ROOMS}


def test_nothing_but_the_public_face_lies_beside_the_rooms():
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py"}


def test_a_room_imports_only_what_stands_above_it():
    above = {"base"}
    for room in ROOMS:
        assert {name.partition(".")[0] for name in room.imports} <= above, room.name
        above.add(room.name)


@pytest.mark.parametrize(
    "broken",
    [
        Import("graph/graph.py", 1, "fedkge.models.scorer"),
        Import("attacks/si.py", 1, "fedkge.runs.run"),
        Import("audit/bound.py", 1, "fedkge.attacks.view"),
        Import("nowhere/new.py", 1, "fedkge.graph.graph"),
    ],
)
def test_the_contract_refuses_what_it_does_not_name(broken):
    assert not allowed(ROOMS, broken)


def test_the_page_says_what_the_contract_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.layers`"
