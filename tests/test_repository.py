"""What holds the repository together: entry points, documented errors, imports, and what no file may hold."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fedkge.base import errors

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
ERRORS = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.FedkgeError)]

# Put together from pieces, so that this file does not hold what it forbids.
REGISTRIES = ["pypi" + ".org", "python" + "hosted", "conda" + ".anaconda", "pypi" + "/simple"]
FOLDERS = ["/ho" + "me/", "/ro" + "ot/", "/wo" + "rk/main", "/wo" + "rk/shared", "/op" + "t/py"]
FORBIDDEN = re.compile(
    "|".join(map(re.escape, REGISTRIES)) + r"|(?<![\w.}])(" + "|".join(map(re.escape, FOLDERS)) + ")"
)


def repository_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listing.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def test_ci_runs_the_readme_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8").splitlines()
    assert "make test " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_phony_target_is_listed_by_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    commented = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert set(phony[1].split()) == commented


def test_exit_codes_are_distinct_and_leave_0_and_2_alone() -> None:
    codes = [error.exit_code for error in ERRORS]
    assert len(set(codes)) == len(ERRORS)
    assert not {0, 2} & set(codes)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_explained(error: type[errors.FedkgeError]) -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {error.exit_code} \| `{error.__name__}` \|", page, re.MULTILINE)
    assert re.search(rf"^## {error.exit_code}: ", page, re.MULTILINE)


def test_import_loads_neither_torch_nor_numba() -> None:
    program = "import fedkge, sys; print(*sorted({'torch', 'numba'} & set(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_module_has_a_room_and_no_pickle(path: Path) -> None:
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert not drawers & {part.removesuffix(".py") for part in path.relative_to(ROOT / "src").parts}
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported.add((node.module or "").split(".")[0])
    assert not imported & {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve"}


@pytest.mark.parametrize("name", ["demo", "dev", "bench", "lowest", "fuzz"])
def test_a_lock_holds_exact_versions_with_their_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = text.replace(" \\\n", " ").splitlines()
    form = r"[a-z0-9.-]+==[a-z0-9.!+]+( ; [^#]*?)?( +--hash=sha256:[0-9a-f]{64})+"
    assert [entry for entry in entries if not re.fullmatch(form, entry)] == []
    assert not any(entry.startswith(("torch==", "fedkge", "nvidia")) for entry in entries)


def test_the_lock_of_the_lowest_versions_holds_the_lowest_that_are_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = re.findall(r"^([a-z0-9-]+)>=([0-9.]+)", "\n".join(project["dependencies"]), re.M)
    locked = dict(
        re.findall(r"^([a-z0-9-]+)==([0-9.]+)", (ROOT / "requirements/lowest.txt").read_text(encoding="utf-8"), re.M)
    )
    assert len(allowed) == len(project["dependencies"])
    for package, lowest in allowed:
        number = [int(part) for part in lowest.split(".")]
        assert [int(part) for part in locked[package].split(".")][: len(number)] == number, package


def test_tests_that_the_documentation_names_exist() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name != Path(__file__).name]
    known = {path.stem for path in tests}
    for path in tests:
        known |= set(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = {name for page in pages for name in re.findall(r"\btest_\w+", page.read_text(encoding="utf-8"))}
    assert named - known == set()


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = []
    for path in repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in FORBIDDEN.finditer(text)]
    assert found == []
