"""The grid: what both stores must do alike, and that a task which fails or dies does not stop the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fedkge.base.errors import RunError
from paper.grid import Files, Lines, Store, Task, Tell, watch_grid

STORES: dict[str, Callable[[Path], Store]] = {"files": Files, "lines": Lines}


def content(digest: str, value: int) -> dict[str, Any]:
    return {"digest": digest, "data": "here", "value": value}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path / "results")


def test_an_empty_store_has_nothing(store: Store) -> None:
    assert list(store.cells()) == []
    assert not store.has("one", "a")


def test_a_cell_is_known_by_name_and_settings(store: Store) -> None:
    store.add("one", content("a", 1))
    assert store.has("one", "a")
    assert not store.has("one", "b")
    assert not store.has("two", "a")


def test_a_cell_that_is_measured_again_takes_the_place_of_the_old_one(store: Store) -> None:
    store.add("one", content("a", 1))
    store.add("two", content("a", 2))
    store.add("one", content("b", 3))
    assert sorted(cell["value"] for cell in store.cells()) == [2, 3]
    assert store.has("one", "b")
    assert not store.has("one", "a")


def test_a_file_that_is_no_cell_is_named(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"format": 99}', '{"format": 1}'):
        (tmp_path / "one.json").write_text(text)
        with pytest.raises(RunError, match=r"one\.json: not a cell of this version .* measured again"):
            Files(tmp_path).has("one", "a")


def work(folder: Path, name: str, tell: Tell) -> None:
    tell("working", 0.5)
    if name == "fails":
        raise RunError("this one cannot be measured")
    if name == "broken":
        raise ValueError("a mistake in the code")
    Files(folder).add(name, content("a", os.getpid()))


def test_a_task_that_fails_is_told_by_name_and_the_others_are_measured(tmp_path: Path) -> None:
    names = ("one", "fails", "broken", "two")
    grid = watch_grid([Task(name, partial(work, tmp_path, name)) for name in names], workers=2)
    assert sorted(grid.done) == ["one", "two"]
    assert set(grid.failed) == {"fails", "broken"}
    assert grid.failed["fails"] == "this one cannot be measured"
    assert "ValueError: a mistake in the code" in grid.failed["broken"]
    assert all(cell["value"] != os.getpid() for cell in Files(tmp_path).cells())


def test_a_grid_without_tasks_is_done() -> None:
    grid = watch_grid([])
    assert (grid.finished, grid.failed, grid.seconds_left()) == (0, {}, None)
