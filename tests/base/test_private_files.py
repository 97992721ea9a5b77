"""Whatever fedkge writes is for its owner only, even where the machine lets everybody read what is new."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fedkge as fk
from fedkge.accounting.ledger import Ledger
from fedkge.base.private_files import make_private, new_file
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.files import write_targets
from fedkge.graph import Graph
from fedkge.graph.shards_on_disk import save_shards
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.runs.vectors.exporting import FORMATS, export_vectors
from fedkge.store.durable_files import write_atomically

SMALL = {"dimension": 4, "rounds": 2, "local_epochs": 1, "batch_size": 64, "seed": 3, "evaluate-every": 0}


def open_to_others(folder: Path) -> list[str]:
    """Files and folders below (and the folder itself) that anybody but the owner can read, write or enter."""
    found = [folder, *folder.rglob("*")]
    return [str(path) for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077 and not path.is_symlink()]


@pytest.fixture(autouse=True)
def permissive() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_check_itself_sees_what_is_open(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a", encoding="utf-8")
    assert open_to_others(tmp_path)[-1] == str(tmp_path / "a")


@pytest.mark.parametrize("options", [{"defence": "none"}, {"epsilon": 8.0, "noise-seed": 1}], ids=["open", "defended"])
def test_a_run_directory(tmp_path: Path, options: dict[str, object]) -> None:
    graph = synthetic_graph(entities=60, relations=3, triples=300, seed=1)
    out = tmp_path / "new" / "run"
    run = fk.train(split(graph, 2, "entity", 1), **SMALL, record="all", out=out, **options)
    assert open_to_others(tmp_path / "new") == []
    assert (out / "config.toml").stat().st_mode & 0o777 == 0o600
    for name in FORMATS:
        export_vectors(run, tmp_path / "new" / "exports" / name, name, client=run.clients[0])
    assert open_to_others(tmp_path / "new") == []


def test_shards_and_targets(tmp_path: Path) -> None:
    graph = Graph.from_names("tiny", train=[("a", "likes", "b"), ("b", "likes", "a")])
    save_shards(split(graph, 2, "triple", 1), tmp_path / "shards")
    make_private(tmp_path / "targets")
    targets = Targets("C", np.array([[0, 0, 1]], np.int32), np.array([True]))
    write_targets(tmp_path / "targets" / "targets.jsonl", targets, graph.entities, graph.relations)
    assert open_to_others(tmp_path / "shards") == open_to_others(tmp_path / "targets") == []


def test_a_ledger_of_its_own(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "books" / "ledger.jsonl")
    assert open_to_others(tmp_path / "books") == []


def test_what_an_older_version_left_half_written_does_not_lend_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a.partial").write_text("half", encoding="utf-8")
    write_atomically(tmp_path / "a", b"whole")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    (tmp_path / "b").write_text("older", encoding="utf-8")
    new_file(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_the_command_line_writes_for_its_user_only(tmp_path: Path) -> None:
    """Figures too, which other libraries write."""
    figure = tmp_path / "curve.svg"
    command = ["-c", "from fedkge.cli import main; main()", "account", "--batch", "64", "--triples", "9000"]
    more = ["--sigma", "1", "--steps", "10", "--rounds", "2", "--plot", str(figure)]
    subprocess.run([sys.executable, *command, *more], check=True, timeout=300)
    assert figure.stat().st_mode & 0o777 == 0o600
