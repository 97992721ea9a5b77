"""A process that trains in forked children and kills them: `python crash_runs.py FOLDER KILLS KIND SEED`.

KIND is `reset` or `kept` (optimiser state, without a defence), `defended`, `counted`: defended, with noisy counts, or
`copied`: on a noisy copy, which takes all of the budget, so that a client which had to pay twice would be missing.

Importing and compiling happens once, here; a child costs milliseconds. Nothing in this process may start a thread
before it forks. It prints what it did as one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import tomllib
from pathlib import Path

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import resume, start
from fedkge.base.errors import PrivacyError
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Evaluate, Fit
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.runs.account import open_account
from fedkge.runs.directory import RunDirectory
from fedkge.store.data_key import read_key
from fedkge.store.durable_files import load_tensors
from tests.short_runs import short

SHARDS = split(synthetic_graph(entities=60, relations=4, triples=500, seed=1), clients=3, seed=3, overlap=0.5)

DEFENCES: dict[str, dict[str, object]] = {
    "defended": {"defence": "noisy-steps", "noise": 3.0, "optimiser": "adam"},
    "counted": {"defence": "noisy-steps", "epsilon": 8.0, "count_share": 0.5, "optimiser": "adam"},
    "copied": {"defence": "recommended", "epsilon": 8.0, "count_share": 0.25, "copy_share": 0.75},
}


def work(folder: Path, options: dict[str, object]) -> None:
    """Start the run, or go on with it."""
    if RunDirectory(folder).exists():
        resume(folder, data=SHARDS)
    else:
        start(short(**options), SHARDS.graphs, folder)


def warm_up(options: dict[str, object]) -> None:
    """Load every kernel that the children will need."""
    plan = ClientPlan(short(**options), 1, 0, ("entities",))
    client = Client("warm", SHARDS[0], plan)
    rows = {"entities": client.embedding.tables.entities.copy()}
    client.handle(Fit(1, rows))
    open_client = Client("open", SHARDS[0], ClientPlan(short(), 1, 0, ("entities",)))
    open_client.handle(Evaluate(rows, "valid"))
    open_client.handle(Evaluate(rows, "test"))


def fork(folder: Path, options: dict[str, object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(folder, options)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def finish(folder: Path, options: dict[str, object]) -> float:
    """Let a child work undisturbed; returns the seconds that it took."""
    began = time.perf_counter()
    _, status = os.waitpid(fork(folder, options), 0)
    if status:
        raise SystemExit(f"a child that nobody killed ended with status {status}")
    return time.perf_counter() - began


def saved_round(folder: Path) -> int:
    """The round that the server has saved, or -1 before it has saved any."""
    server = folder / "checkpoints" / "server.safetensors"
    return int(load_tensors(server)[1]["round"]) if server.exists() else -1


def wait_for_round(child: int, folder: Path, number: int) -> None:
    """Until this round is saved, however fast the machine is, or the child has ended."""
    while saved_round(folder) < number and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.001)


def inspect(folder: Path) -> int:
    """Read every file; returns the round that the server has saved, or -1 before it has saved any."""
    for path in folder.rglob("*"):
        if path.suffix == ".safetensors":
            load_tensors(path)
        elif path.name == "ledger.jsonl":
            check_ledger(path)
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        elif path.suffix == ".toml":
            tomllib.loads(path.read_text(encoding="utf-8"))
        elif path.name == "data.key":
            read_key(path)
        elif path.suffix == ".txt":
            assert path.read_text(encoding="utf-8").endswith("\n")
        else:
            assert path.is_dir() or path.suffix == ".partial", path
    return saved_round(folder)


def check_ledger(path: Path) -> None:
    """Every upload that the server has kept is charged, and was released, in the ledger that a crash left behind."""
    ledger = Ledger.read(path)
    for upload in path.parent.glob("transcript/round-*/upload-*.safetensors"):
        client, number = upload.stem.removeprefix("upload-"), int(upload.parent.name.removeprefix("round-"))
        if ledger.clients:
            entries = [entry for entry in ledger.by_round(client) if entry.round == number]
            assert any(entry.released for entry in entries), f"{client} has not paid for round {number}"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run, but for its own key, the digest under it and its random identity."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    config = tomllib.loads(files["config.toml"].decode())
    for key in ("data", "run"):
        config["provenance"].pop(key, None)
    return {
        **{name: content for name, content in files.items() if not name.startswith("data.key")},
        "config.toml": json.dumps(config).encode(),
    }


def refused(folder: Path, backup: Path) -> bool:
    """Whether a backup of ledger and checkpoints, put back together, is refused; the run is as before afterwards."""
    aside = folder.rename(folder.with_name("aside"))
    shutil.copytree(backup, folder)
    outcomes = []
    for way in (lambda: resume(folder, data=SHARDS), lambda: open_account(folder)):
        try:
            way()
        except PrivacyError as error:
            outcomes.append("restored from an older copy" in str(error))
    shutil.rmtree(folder)
    aside.rename(folder)
    return outcomes == [True, True]


def steps(ledger: Ledger, client: str) -> int:
    return sum(charge.steps for charge in ledger.charges(client))


def main(folder: Path, kills: int, state: str, seed: int) -> None:
    # About one round per kill; the model stays small, so most of a round is writing files.
    options: dict[str, object] = {
        "rounds": max(8, kills * 2 // 3),
        "optimiser_state": state,
        "fraction": 0.7,
        "evaluate_every": 3,
        "record": "every:4",
        "threads": 2,
    }
    if state in DEFENCES:
        options |= {**DEFENCES[state], "noise_seed": 4, "optimiser_state": "kept", "record": "all"}
    warm_up(options)
    rounds = int(str(options["rounds"]))
    whole = finish(folder / "undisturbed", options)
    again = finish(folder / "undisturbed", options)  # a finished run: all that a start costs
    moments, disturbed = random.Random(seed), folder / "disturbed"
    done, attempts, seen, unfinished = 0, 0, [], 0
    while done < kills:
        attempts += 1
        child = fork(disturbed, options)
        wait_for_round(child, disturbed, rounds * done // kills)
        time.sleep(moments.uniform(0, (0 if done else again) + 1.5 * whole / rounds))
        os.kill(child, signal.SIGKILL)  # an ended child is a zombie until it is waited for, so this is never another's
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise SystemExit(f"attempt {attempts} failed by itself")
        done += os.WIFSIGNALED(status)
        seen.append(inspect(disturbed))
        unfinished += not (disturbed / "model.safetensors").exists()
        if done == kills // 2 and state in DEFENCES:
            shutil.rmtree(folder / "backup", ignore_errors=True)
            shutil.copytree(disturbed, folder / "backup")
    finish(disturbed, options)
    inspect(disturbed)
    rollback = state in DEFENCES and not refused(disturbed, folder / "backup")
    one, other = contents(folder / "undisturbed"), contents(disturbed)
    ledgers = [Ledger.read(folder / name / "ledger.jsonl") for name in ("undisturbed", "disturbed")]
    short_of = [name for name in ledgers[0].clients if steps(ledgers[1], name) < steps(ledgers[0], name)]
    different = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
    if state in DEFENCES:  # what a crash has torn stays counted
        different = [name for name in different if name != "ledger.jsonl"] + short_of
    print(  # noqa: T201
        json.dumps(
            {"kills": done, "attempts": attempts, "rounds": seen, "unfinished": unfinished, "different": different}
            | {"rolled_back": rollback}
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
