"""Kill -9 at random moments: what was charged is there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError
from tests.accounting.spender import CLIENTS

ROOT = Path(__file__).parents[2]


def kill_repeatedly(path: Path, kills: int, seed: int) -> None:
    moments = random.Random(seed)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    charged = dict.fromkeys(CLIENTS, 0)
    before = dict.fromkeys(CLIENTS, 0)
    older = b""
    for _ in range(kills):
        command = [sys.executable, "-m", "tests.accounting.spender", str(path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(moments.random() * 0.05)
            process.kill()
            said = (first + process.stdout.read()).decode()
        for line in said.splitlines(keepends=True):
            if line.endswith("\n"):
                charged[line.split()[0]] += 1
        for client in CLIENTS:
            entries = Ledger.read(path).by_round(client)
            assert len(entries) >= charged[client]
            assert len(entries) >= before[client]
            before[client] = len(entries)
        older = refuse_older(path, older)
    assert sum(charged.values()) >= kills, "each writer had charged something before it was killed"
    assert Ledger.open(path).clients == CLIENTS
    assert sum(before.values()) <= sum(charged.values()) + 4 * kills, "a kill costs a line or two, not more"


def refuse_older(path: Path, older: bytes) -> bytes:
    """Put back what the kill before left behind: it is refused, whatever this kill came between."""
    newest = path.read_bytes()
    if older:
        path.write_bytes(older)
        for way in (Ledger.read, Ledger.open):
            with pytest.raises(PrivacyError, match="restored from an older copy"):
                way(path)
    path.write_bytes(newest)
    return newest


def test_three_kills(tmp_path):
    kill_repeatedly(tmp_path / "ledger.jsonl", 3, seed=1)


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    kill_repeatedly(tmp_path / "ledger.jsonl", 100, seed=2)
