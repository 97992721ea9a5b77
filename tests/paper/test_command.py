"""`fedkge reproduce` as a person calls it: real processes, a page at the end, nothing measured twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paper.cells import read_cells
from tests.paper.tiny import write_tiny


def call(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words_of(folder, *words), capture_output=True, text=True, check=False, cwd=folder)
    assert not check or done.returncode == 0, done.stderr
    return done


def words_of(folder: Path, *words: str) -> list[str]:
    program = "from fedkge.cli import main\nif __name__ == '__main__':\n    main()\n"
    script = folder / "fedkge_program.py"
    script.write_text(program)
    return [sys.executable, str(script), "reproduce", *words, "--settings", str(folder / "settings"), "--workers", "2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny(tmp_path / "settings")
    return tmp_path


def test_everything_is_measured_once_and_the_page_is_complete(folder: Path) -> None:
    first = call(folder, "all", "--json")
    told = json.loads(first.stdout)
    assert told["failed"] == {}
    cells = read_cells(folder / "results")
    assert len(cells) == told["cells"]
    assert {cell.command for cell in cells.values()} == {"fedkge reproduce all --json --workers 2"}
    head = json.loads((folder / "results" / "reproduction.json").read_text())["head"]
    assert (head["there"], head["wanted"]) == (len(cells), len(cells))
    assert (folder / "results" / "reproduction.html").read_text().endswith("</html>")
    again = call(folder, "all")
    assert "0 federations are left" in again.stderr
    assert "reproduction.html" in again.stdout
    assert not list((folder / "runs" / "reproduction").glob("*"))


def test_a_plan_does_nothing(folder: Path) -> None:
    done = call(folder, "table-attacks", "--plan", "--json")
    assert set(json.loads(done.stdout)) == {"federations", "seconds", "workers"}
    assert not (folder / "results").exists()


def test_a_page_of_nothing_is_an_error(folder: Path) -> None:
    done = call(folder, "--page", check=False)
    assert done.returncode != 0
    assert "no cell has been measured" in done.stderr


def test_a_federation_that_fails_does_not_stop_the_others(folder: Path) -> None:
    path = folder / "settings" / "federations.toml"
    path.write_text(path.read_text().replace("[sound.none]\n", "[sound.none]\nlearning-rate = 1e30\n"))
    done = call(folder, "demo.transe.sound.none.s3", "demo.transe.published.none.s3", check=False)
    assert done.returncode != 0
    assert "1 of 2 federations failed" in done.stderr
    assert [str(key) for key in read_cells(folder / "results")] == ["demo.transe.published.none.s3"]


def test_killed_in_the_middle_it_goes_on(folder: Path) -> None:
    words = words_of(folder, "table-utility")
    process = subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True)
    while not list((folder / "results" / "cells").glob("*.json")) and process.poll() is None:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = set(read_cells(folder / "results"))
    done = call(folder, "table-utility", "--json")
    after = read_cells(folder / "results")
    assert before < set(after)
    assert len(after) == json.loads(done.stdout)["cells"]
