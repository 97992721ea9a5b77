"""The table of digests: a cell is the same when it is trained again, and a changed table is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import digests

CELL = "recommended count-share=0.5"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("digests") / "table.json"
    assert digests.main(["--cell", CELL, "--table", str(table)]) == 0
    return table


def check(table: Path) -> int:
    return digests.main(["--check", "--cell", CELL, "--table", str(table)])


def test_a_cell_that_is_trained_again_has_the_same_bits(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(written) == 0
    assert f"same      {CELL}" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["sha256", "mrr", "epsilon"])
def test_a_changed_table_is_noticed(
    written: Path, tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(written.read_text())
    content["cells"][CELL][key] = "something else"
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(content))
    assert check(changed) == 1
    assert f"{key}: expected something else, got" in capsys.readouterr().out


def test_a_cell_that_the_table_lacks_is_a_difference(tmp_path: Path, written: Path) -> None:
    content = json.loads(written.read_text())
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({**content, "cells": {}}))
    assert check(changed) == 1


def test_a_cell_that_cannot_be_trained_is_a_difference(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(digests.CELLS, CELL, digests.Cell({"model": "no such model"}))
    assert check(written) == 1
    assert "DIFFERENT" in capsys.readouterr().out


def test_a_table_is_not_replaced_unasked(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = written.read_bytes()
    assert digests.main(["--cell", CELL, "--table", str(written)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert written.read_bytes() == before


def test_without_a_table_or_a_cell_nothing_is_trained(tmp_path: Path) -> None:
    assert check(tmp_path / "none.json") == 2
    assert digests.main(["--cell", "no such cell"]) == 2


def test_the_stored_table_has_every_cell() -> None:
    assert list(json.loads(digests.TABLE.read_text())["cells"]) == list(digests.CELLS)


def test_the_page_has_both_tables_and_says_what_differs(tmp_path: Path, written: Path) -> None:
    table = json.loads(written.read_text(encoding="utf-8"))
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(table), encoding="utf-8")
    after.write_text(json.dumps(table), encoding="utf-8")
    assert digests.main(["--table", str(before), "--page", str(after)]) == 0
    assert "0 of 1 cells differ" in (tmp_path / "README.md").read_text(encoding="utf-8")
    for cell in table["cells"].values():
        cell["sha256"] = "0" * 64
    after.write_text(json.dumps(table), encoding="utf-8")
    assert digests.main(["--table", str(before), "--page", str(after)]) == 1
    assert "**no**" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_the_stored_page_is_that_of_the_stored_tables() -> None:
    folder = digests.TABLE.parent
    page = (folder / "README.md").read_text(encoding="utf-8")
    for name in ("before.json", "after.json"):
        cells = json.loads((folder / name).read_text(encoding="utf-8"))["cells"]
        assert all(f"`{cell['sha256'][:16]}`" in page for cell in cells.values())
    assert "0 of 100 cells differ" in page
