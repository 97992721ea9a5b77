"""`fedkge reproduce` finds the paper in a clone, and elsewhere says what is missing and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fedkge
from fedkge.base.errors import UnavailableError
from fedkge.cli.reproduce import load_paper

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "from fedkge.cli import main; main()"


def call(folder: Path, *words: str, package: Path) -> subprocess.CompletedProcess[str]:
    """`fedkge` as it is installed in `package`, called in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-P", "-c", PROGRAM, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package alone, as a wheel installs it."""
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "src" / "fedkge", place / "fedkge", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_outside_a_clone_it_says_what_is_missing_and_what_to_do(installed: Path, tmp_path: Path) -> None:
    done = call(tmp_path, "reproduce", "--quick", "--plan", package=installed)
    assert done.returncode == UnavailableError.exit_code
    told = " ".join(done.stderr.split())
    assert "expected the folder paper/ of fedkge's repository" in told
    assert "clone the repository and call `fedkge reproduce` inside the clone" in told
    assert "Traceback" not in done.stderr


def test_an_installed_package_finds_the_clone_that_it_is_called_in(installed: Path) -> None:
    done = call(ROOT / "docs", "reproduce", "--quick", "--plan", "--json", package=installed)
    assert done.returncode == 0, done.stderr
    assert '"federations"' in done.stdout


def test_a_clone_finds_its_own_paper_wherever_it_is_called(tmp_path: Path) -> None:
    done = call(tmp_path, "reproduce", "--quick", "--plan", "--json", package=ROOT / "src")
    assert done.returncode == 0, done.stderr
    assert '"federations"' in done.stdout


def test_another_package_of_that_name_is_not_taken_for_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "__init__.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(fedkge, "__file__", str(tmp_path / "site" / "fedkge" / "__init__.py"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "paper"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UnavailableError, match="clone the repository"):
        load_paper(tmp_path)


def test_the_package_holds_nothing_of_the_paper() -> None:
    sources = (ROOT / "src").rglob("*.py")
    assert not [path for path in sources if "import paper" in path.read_text() or "from paper" in path.read_text()]
    assert not list((ROOT / "src").rglob("*reproduction*"))
