"""Targets for what fedkge itself wrote and somebody may have damaged: ledgers, checkpoints, run directories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

import fedkge as fk
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.ledger_lines import sealed
from fedkge.accounting.promises import Promise
from fedkge.api.training import open_run
from fedkge.base.errors import FedkgeError
from fedkge.deploy.greetings import Greetings
from fedkge.deploy.status import Status, read_status
from fedkge.deploy.wire import encode
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.experiments.recorded_audit import run_audit
from fedkge.experiments.targets.files import FORMAT, read_targets
from fedkge.graph import Vocabulary
from fedkge.graph.split import Shards, split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.events import Charge, SampledGaussian
from fedkge.report import gather
from fedkge.store.durable_files import load_tensors, save_tensors
from fuzz.files import file_target, folder_target
from fuzz.messages import GREETING
from fuzz.targets import Judge, Target

TEXTS = (".toml", ".json", ".jsonl", ".txt")
SMALL = {"rounds": 2, "dimension": 4, "negatives": 2, "batch_size": 64, "local_epochs": 1, "seed": 3, "noise_seed": 1}


@cache
def _shards() -> Shards:
    return split(
        synthetic_graph(entities=60, relations=3, triples=600, seed=1), clients=2, by="entity", seed=1, overlap=0.6
    )


def _run(folder: Path) -> Mapping[str, bytes]:
    """A small run under a defence, with canaries, attacks and an audit; the files of it that are text."""
    if not (folder / "config.toml").exists():
        canaries = {"record": "all", "canaries": 20, "canary_coins": "seeded"}
        run = fk.train(_shards(), out=folder, epsilon=8.0, **SMALL, **canaries)
        run_attacks(run, AttackPlan(attacks=("upload-difference",), count=20, calibration=5))
        run_audit(run, ("upload-difference",))
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in TEXTS}


def _read_run(folder: Path) -> None:
    with suppress(FedkgeError):
        open_run(folder, data=_shards()).epsilon()
    gather(folder, "owner").to_json()


def _ledger_seed(folder: Path) -> list[bytes]:
    """The records of a real ledger, without what seals them."""
    ledger = Ledger.open(folder / "seed.jsonl")
    charges = (Charge(SampledGaussian(rate=0.01, multiplier=2.0), steps=5),)
    ledger.promise(Promise("client-0", 1e-5, 8.0, "rdp", largest_round=charges))
    ledger.charge("client-0", 1, charges)
    ledger.release("client-0", 1)
    content = (folder / "seed.jsonl").read_bytes()
    (folder / "seed.jsonl").unlink()
    records = [json.loads(line) for line in content.splitlines()]
    bare = [{key: value for key, value in record.items() if key != "checksum"} for record in records]
    return [content, b"".join(json.dumps(record).encode() + b"\n" for record in bare)]


def _ledger(folder: Path) -> Judge:
    """Lines as they come; and sealed anew where they are JSON, so that what a seal hides is reached too."""
    path = folder / "ledger.jsonl"

    def look() -> None:
        with suppress(FedkgeError):
            ledger = Ledger.read(path)
            for client in list(ledger.promises):
                ledger.spent(client)

    def judge(content: bytes) -> None:
        path.write_bytes(content)
        look()
        lines, previous = [], ""
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            for text in content.splitlines():
                line, previous = sealed(json.loads(text), previous)
                lines.append(line)
        if lines:
            path.write_bytes(b"".join(lines))
            look()

    return judge


def _tensors(folder: Path) -> list[bytes]:
    save_tensors(folder / "seed.safetensors", {"entities": np.ones((2, 3), np.float32)}, {"round": 1})
    return [(folder / "seed.safetensors").read_bytes()]


def _status(path: Path) -> None:
    read_status(path.parent)
    Status(path.parent).note("one more")


def _greetings(path: Path) -> None:
    Greetings(path.parent).all()


CANARY = {"head": "a", "relation": "r", "tail": "b", "member": True}
CANARIES = [{"format": FORMAT, "design": "C", "targets": 1, "all": 1}, CANARY]
REPORT = tuple(f"fedkge.report.{name}" for name in ("gather", "measured", "promised", "worth", "reading", "verdict"))
LEDGER = tuple(f"fedkge.accounting.{name}" for name in ("ledger", "ledger_lines", "promises"))
STATUS = b'{"state": "training", "notes": ["a"], "noted": 1}'
NAMES = Vocabulary(("a", "b"))

TARGETS: dict[str, Target] = {
    "ledger": Target(
        _ledger,
        _ledger_seed,
        (
            "fedkge.accounting.ledger",
            "fedkge.accounting.ledger_lines",
            "fedkge.accounting.promises",
            "fedkge.mechanisms.events",
        ),
    ),
    "tensors": Target(
        file_target("model.safetensors", load_tensors, [], ()).make, _tensors, ("fedkge.store.durable_files",)
    ),
    "run": folder_target(
        _run,
        _read_run,
        (*REPORT, "fedkge.runs.run", "fedkge.configuration"),
    ),
    "targets": file_target(
        "targets.jsonl",
        lambda path: read_targets(path, NAMES, Vocabulary(("r",))),
        ["".join(json.dumps(line) + "\n" for line in CANARIES).encode()],
        ("fedkge.experiments.targets.files",),
    ),
    "status": file_target("status.json", _status, [STATUS], ("fedkge.deploy.status",)),
    "greetings": file_target("a.safetensors", _greetings, [encode(GREETING)], ("fedkge.deploy.greetings",)),
}
