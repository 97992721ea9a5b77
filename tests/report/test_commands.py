"""`fedkge report` and `fedkge compare` as people use them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedkge.cli.app import app


def call(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_report_writes_a_page_and_its_json(bare: Path) -> None:
    code, out, err = call("report", bare)
    assert code == 0
    assert out.startswith("Not tested")
    for name, copy in (("report", "shareable"), ("report-for-owner", "for-owner")):
        content = json.loads((bare / f"{name}.json").read_text(encoding="utf-8"))
        assert content["copy"] == copy
        assert (bare / f"{name}.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert f"Shareable copy, only what is public or paid for: {bare / 'report.html'}" in out
    assert f"Owner's copy, exact figures and named triples: {bare / 'report-for-owner.html'}" in out
    assert "Share only the shareable copy" in err


def test_the_owners_copy_has_its_own_name(bare: Path, tmp_path: Path) -> None:
    code, out, _ = call("report", bare, "--for-owner", "--out", tmp_path / "mine.html", "--json")
    assert code == 0
    assert json.loads(out)["copy"] == "for-owner"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.html", "mine.json"]
    code, out, _ = call("report", bare, "--out", tmp_path / "new" / "page.html", "--beside", bare, "--json")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "new" / "page.json").read_text(encoding="utf-8"))
    owners = json.loads((tmp_path / "new" / "page-for-owner.json").read_text(encoding="utf-8"))
    assert owners["utility"]["rows"][-1]["kind"] == "beside"


def test_refusals_say_what_to_do(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = call("report", tmp_path)
    assert (code, "no run here" in err) == (6, True)
    code, _, err = call("report", bare, "--out", tmp_path / "page.txt")
    assert (code, "ends in .html" in err) == (4, True)
    monkeypatch.setitem(__import__("sys").modules, "weasyprint", None)
    code, _, err = call("report", bare, "--out", tmp_path / "page.html", "--pdf")
    assert (code, "WeasyPrint" in err, (tmp_path / "page.html").exists()) == (5, True, False)
    code, _, err = call("compare", bare)
    assert (code, "at least two runs" in err) == (4, True)


def test_compare_shows_runs_side_by_side(run: Path, overclaimed: Path, tmp_path: Path) -> None:
    plot, page = tmp_path / "plane.svg", tmp_path / "page.html"
    code, out, _ = call("compare", run, overclaimed, "--plot", plot, "--html", page)
    assert code == 0
    assert "1. run" in out
    assert "2. overclaimed" in out
    assert "popularity, epsilon 1" in out
    assert plot.read_text(encoding="utf-8").startswith("<?xml")
    code, out, _ = call("compare", run, overclaimed, "--json")
    assert [one["name"] for one in json.loads(out)["runs"]] == ["run", "overclaimed"]
