"""Kill -9 at random moments of one training, each followed by resume: nothing is lost and nothing is torn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def kill_and_resume(folder: Path, kills: int, kind: str, seed: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "tests.federation.crash_runs", str(folder), str(kills), kind, str(seed)]
    done = subprocess.run(
        command, env={**environment, "OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] == kills
    assert report["different"] == []
    assert not report["rolled_back"], "a backup of ledger and checkpoints was gone on from"
    assert report["rounds"] == sorted(report["rounds"])
    assert len(set(report["rounds"])) > kills // 8, "the kills did not spread over the training"
    assert report["unfinished"] >= kills // 3


@pytest.mark.parametrize("kind", ["kept", "defended", "counted", "copied"])
def test_six_kills(tmp_path, kind):
    kill_and_resume(tmp_path, 6, kind, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reset", "kept", "defended", "counted", "copied"])
def test_fifty_kills(tmp_path, kind):
    kill_and_resume(tmp_path, 50, kind, seed=2)
