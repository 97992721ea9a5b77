"""Runs on disk: what may be started, continued and opened, and what happens when the disk or the data misbehave."""

from __future__ import annotations

import errno
import os
import re
import shutil

import numpy as np
import pytest

import fedkge as fk
from fedkge.api.training import open_run, resume, train
from fedkge.base.errors import ConfigurationError, NumericalError, RunError
from fedkge.federation.messages import RankingMetrics
from fedkge.federation.observer import Observer
from fedkge.runs.directory import RunDirectory
from fedkge.runs.transcript import Transcript
from fedkge.store.durable_files import load_tensors, save_tensors

OPTIONS = {
    "rounds": 4,
    "dimension": 8,
    "negatives": 8,
    "negative_group": 8,
    "batch_size": 32,
    "local_epochs": 1,
    "evaluate_every": 2,
    "learning_rate": 0.01,
    "optimiser_state": "kept",
    "record": "every:2",
    "seed": 5,
    "threads": 1,
}


@pytest.fixture(scope="module")
def shards():
    graph = fk.synthetic_graph(entities=60, relations=4, triples=500, seed=1)
    return fk.split(graph, clients=3, by="entity", seed=3, overlap=0.5)


@pytest.fixture(scope="module")
def finished(shards, tmp_path_factory):
    """A finished run; tests take copies of it."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    train(shards, out=folder, **OPTIONS)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def contents(folder):
    """Every file, but for the run's own key and the digest under it, which no two runs have in common."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files.pop("data.key", None)
    return {name: re.sub(rb'\ndata = "[0-9a-f]{8}:[0-9a-f]{32}"', b"", content) for name, content in files.items()}


class Stop(Exception):  # noqa: N818 - not an error
    """What a test raises to leave a run unfinished."""


class StopAfter(Observer):
    """Ends the program after a round, before it is saved."""

    def __init__(self, number):
        self._number = number

    def round_done(self, facts):
        if facts["round"] == self._number:
            raise Stop


def unfinished(shards, folder, after=3, **options):
    with pytest.raises(Stop):
        train(shards, out=folder, observer=StopAfter(after), **{**OPTIONS, **options})
    return folder


def test_a_run_directory_holds_what_the_design_says(finished):
    names = {"config.toml", "data.key", "entities.txt", "relations.txt", "metrics.jsonl", "model.safetensors"}
    assert {entry.name for entry in finished.iterdir()} == names | {"ledger.jsonl", "checkpoints", "transcript"}
    assert (finished / "ledger.jsonl").read_bytes() == b""
    assert Transcript(finished).rounds() == [2, 4]
    assert not list(finished.rglob("*.partial"))


def test_opened_and_trained_runs_are_the_same(run, shards):
    trained, opened = train(shards, **OPTIONS), open_run(run, data=shards)
    assert {name: table.tobytes() for name, table in opened.tensors.items()} == {
        name: table.tobytes() for name, table in trained.tensors.items()
    }
    assert opened.metrics == trained.metrics
    assert list(opened.entities) == list(trained.entities)
    assert opened.embedding().tables.entities.tobytes() == opened.embedding("client-0").tables.entities.tobytes()
    with pytest.raises(
        ConfigurationError, match="no client 'client-7' in this run: expected one of client-0, client-1, client-2"
    ):
        opened.embedding("client-7")


def test_the_first_client_is_the_default_with_many_clients_too(shards):
    many = train(list_of_shards(shards), **{**OPTIONS, "rounds": 1, "record": "none"})
    assert many.clients[0] == "client-00"
    assert many.embedding().candidates == len(shards[0].entities)


def list_of_shards(shards):
    return fk.Shards("many", tuple(shards) * 4, shards.summary)


def test_an_existing_run_is_refused_unless_overwritten(run, shards):
    before = contents(run)
    with pytest.raises(RunError, match=r"a run exists here; continue it with `fedkge resume .*--overwrite"):
        train(shards, out=run, **OPTIONS)
    assert contents(run) == before
    train(shards, out=run, overwrite=True, **{**OPTIONS, "seed": 6})
    assert contents(run)["model.safetensors"] != before["model.safetensors"]
    train(shards, out=run, overwrite=True, **OPTIONS)
    assert contents(run) == before


def test_resuming_a_finished_run_changes_nothing(run, shards):
    before = contents(run)
    resume(run, data=shards)
    assert contents(run) == before


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_resume_continues_bit_for_bit(finished, shards, tmp_path, after):
    folder = unfinished(shards, tmp_path / "run", after)
    assert not (folder / "model.safetensors").exists()
    with pytest.raises(RunError, match="missing; the run is not finished: `fedkge resume"):
        open_run(folder, data=shards)
    resume(folder, data=shards)
    assert contents(folder) == contents(finished)


def test_two_processes_do_not_train_one_run(run, shards):
    before = contents(run)
    with RunDirectory(run).locked():
        with pytest.raises(RunError, match="another process is training this run"):
            resume(run, data=shards)
        with pytest.raises(RunError, match="another process is training this run"):
            train(shards, out=run, overwrite=True, **OPTIONS)
        assert contents(run) == before
    resume(run, data=shards)


def test_nothing_to_resume(tmp_path):
    with pytest.raises(RunError, match=r"no run here \(expected config.toml\)"):
        resume(tmp_path)


def test_what_an_interrupted_start_leaves_does_no_harm(finished, shards, tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "ledger.jsonl").write_bytes(b"")
    (folder / "config.toml.partial").write_bytes(b"seed = ")
    train(shards, out=folder, **OPTIONS)
    assert contents(folder) == contents(finished)


def test_checkpoints_without_a_configuration_are_never_taken_over(run, shards):
    (run / "config.toml").unlink()
    before = contents(run)
    with pytest.raises(RunError, match=r"checkpoints belong to a run whose config.toml is missing; move them away"):
        train(shards, out=run, **OPTIONS)
    assert contents(run) == before


def test_removing_takes_the_configuration_last(run, monkeypatch):
    genuine, seen = shutil.rmtree, []

    def interrupted(path, **_):
        seen.append(path)
        if len(seen) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        genuine(path)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(RunError, match="could not be removed"):
        RunDirectory(run).remove()
    assert RunDirectory(run).exists()
    monkeypatch.undo()
    RunDirectory(run).remove()
    assert contents(run) == {}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("round = 7", "unknown configuration key 'round': did you mean rounds"),
        ("rounds = 7", r"config.toml: expected options in sections, got rounds outside of any; write\n\n\[training\]"),
        ("[experiment]\nseed = 5", r"expected TOML, got: Cannot declare \('experiment',\) twice"),
        ("this is no TOML", "config.toml: expected TOML, got"),
    ],
)
def test_a_configuration_that_was_tampered_with(run, shards, line, reason):
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(f"{line}\n{text}")
    with pytest.raises(ConfigurationError, match=reason):
        resume(run, data=shards)
    (run / "config.toml").write_text(text)
    resume(run, data=shards)


@pytest.mark.parametrize(("before", "after"), [("dimension = 8", "dimension = 12"), ("seed = ", "seed = 1")])
def test_a_configuration_that_was_changed_under_the_run(run, shards, before, after):
    path = run / "config.toml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    for verb in (resume, open_run):
        with pytest.raises(
            RunError, match=r"config.toml was changed after the run began; restore it \(only evaluate-every,"
        ):
            verb(run, data=shards)


def test_more_rounds_may_be_asked_for_later(run, shards, tmp_path):
    path = run / "config.toml"
    rounds = OPTIONS["rounds"]
    path.write_text(path.read_text().replace(f"rounds = {rounds}", f"rounds = {rounds + 2}", 1))
    resume(run, data=shards)
    train(shards, out=tmp_path / "longer", **{**OPTIONS, "rounds": rounds + 2})
    assert (run / "model.safetensors").read_bytes() == (tmp_path / "longer" / "model.safetensors").read_bytes()


def test_data_that_changed_under_the_run(run, shards):
    graphs = list(shards)
    first = graphs[0]
    graphs[0] = fk.Graph(first.name, first.entities, first.relations, first.train[1:], first.valid, first.test)
    changed = fk.Shards(shards.name, tuple(graphs), shards.summary)
    for verb in (resume, open_run):
        with pytest.raises(RunError, match=r"the run was trained on other data; restore that data, or start"):
            verb(run, data=changed)
    with pytest.raises(ConfigurationError, match="unknown data set 'synthetic'"):
        resume(run)  # the graph was made in Python: no data set of that name exists


CHECKPOINTS = ["client-0", "client-2", "server"]


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("damage", ["truncated", "empty", "header", "data"])
def test_a_corrupt_checkpoint(run, shards, name, damage):
    path = run / "checkpoints" / f"{name}.safetensors"
    whole = path.read_bytes()
    flip = {"header": 20, "data": len(whole) - 5}.get(damage, 0)
    bad = {"truncated": whole[: len(whole) // 2], "empty": b""}.get(
        damage, whole[:flip] + bytes([whole[flip] ^ 8]) + whole[flip + 1 :]
    )
    path.write_bytes(bad)
    with pytest.raises(RunError, match=f"{name}.safetensors: expected a safetensors file, got a damaged one"):
        resume(run, data=shards)
    path.write_bytes(whole)
    resume(run, data=shards)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_missing_checkpoint(run, shards, name):
    (run / "checkpoints" / f"{name}.safetensors").unlink()
    with pytest.raises(RunError, match=f"{name}.safetensors: missing"):
        resume(run, data=shards)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_of_different_moments_do_not_mix(run, shards, tmp_path, name):
    early = unfinished(shards, tmp_path / "early", after=2)
    file = f"checkpoints/{name}.safetensors"
    shutil.copy(early / file, run / file)
    with pytest.raises(
        RunError, match=r"client-\d.safetensors: expected client-\d between rounds . and ., .* got round"
    ):
        resume(run, data=shards)


def test_a_server_that_forgot_its_clients(run, shards):
    (run / "checkpoints" / "server.safetensors").unlink()
    with pytest.raises(RunError, match=r"server.safetensors: missing, but client-0, client-1, client-2 has trained"):
        resume(run, data=shards)


def test_a_corrupt_model(run, shards):
    path = run / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RunError, match=r"model.safetensors: expected a safetensors file, got a damaged one"):
        open_run(run, data=shards)
    resume(run, data=shards)
    open_run(run, data=shards)


@pytest.mark.parametrize("out", ["file/run", "file"])
def test_a_folder_that_cannot_be_made(tmp_path, shards, out):
    (tmp_path / "file").write_text("I am a file")
    with pytest.raises(RunError, match=r"cannot be made .*choose another --out"):
        train(shards, out=tmp_path / out, **OPTIONS)


@pytest.mark.parametrize("room", [3, 9, 14, 20, 30, 41, 55])
def test_a_full_disk_loses_nothing(finished, shards, tmp_path, monkeypatch, room):
    """The disk is full after so many syncs; when there is room again, the run ends as if nothing had happened."""
    folder, genuine, calls = tmp_path / "run", os.fsync, []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        genuine(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(RunError, match=r"No space left on device"):
        train(shards, out=folder, **OPTIONS)
    for path in folder.rglob("*.safetensors"):
        load_tensors(path)
    monkeypatch.undo()
    if RunDirectory(folder).exists():
        resume(folder, data=shards)
    else:
        train(shards, out=folder, **OPTIONS)
    assert contents(folder) == contents(finished)


def test_below_the_minimum_nothing_is_lost(finished, shards, tmp_path):
    folder = tmp_path / "run"
    tight = {"largest_row_norm": 1e-6, "minimum_clients": 3}
    message = r"round 1: expected at least 3 valid uploads, got 0 \(client-0: entities: row.*raise largest-row-norm"
    with pytest.raises(NumericalError, match=message):
        train(shards, out=folder, **{**OPTIONS, **tight})
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("largest-row-norm = 1e-06", "largest-row-norm = 1000.0"))
    resume(folder, data=shards)
    assert (folder / "model.safetensors").read_bytes() == (finished / "model.safetensors").read_bytes()


@pytest.mark.parametrize("strategy", ["fede", "isolated"])
def test_a_training_that_diverges_is_a_numerical_error(shards, strategy):
    """Resuming would repeat it: the message must not send anyone there."""
    options = {**OPTIONS, "strategy": strategy, "optimiser": "sgd", "learning_rate": 1e38}
    with pytest.raises(NumericalError, match=r"diverged and would do so again: start a new run with a lower learning"):
        train(shards[0], **options)


def test_another_number_of_threads_for_the_rest(finished, shards, tmp_path):
    unfinished(shards, tmp_path / "run", after=2)
    run = resume(tmp_path / "run", data=shards, threads=1)
    assert run.configuration.training.threads == 1
    assert (tmp_path / "run/model.safetensors").read_bytes() == (finished / "model.safetensors").read_bytes()


def test_start_vectors_are_needed_at_the_start_only(shards, tmp_path, finished):
    """They are part of round 0, which is on disk: clients that were not invited yet keep theirs."""
    from_run = {"init": str(finished), "fraction": 0.4, "evaluate_every": 0, "record": "none"}
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train(shards, out=whole, **{**OPTIONS, **from_run})
    unfinished(shards, stopped, after=2, **from_run)
    resume(stopped, data=shards)
    assert (whole / "model.safetensors").read_bytes() == (stopped / "model.safetensors").read_bytes()
    plain = train(shards, **{**OPTIONS, **from_run, "init": ""})
    assert plain.tensors["entities"].tobytes() != load_tensors(whole / "model.safetensors")[0]["entities"].tobytes()


def test_a_foreign_checkpoint_is_refused(run, shards):
    path = run / "checkpoints" / "server.safetensors"
    _, facts = load_tensors(path)
    save_tensors(path, {"entities": np.zeros((2, 8), np.float32)}, facts)
    with pytest.raises(RunError, match=r"the checkpoint does not fit the clients' names\. Did the data change"):
        resume(run, data=shards)


def test_seeds_are_drawn_and_kept(shards, tmp_path):
    folder = tmp_path / "run"
    options = {**OPTIONS, "rounds": 1, "evaluate_every": 0, "record": "none", "seed": None}
    drawn = train(shards, out=folder, **options).configuration.experiment.seed
    assert drawn is not None
    assert open_run(folder, data=shards).configuration.experiment.seed == drawn
    again = train(shards, **{**options, "seed": drawn})
    assert again.tensors["entities"].tobytes() == load_tensors(folder / "model.safetensors")[0]["entities"].tobytes()


def test_metrics_on_disk_are_the_metrics_of_the_run(run, shards):
    opened = open_run(run, data=shards)
    assert [(line["round"], line["split"]) for line in opened.metrics][:2] == [(2, "valid"), (4, "valid")]
    last = opened.metrics[-1]
    for name, evaluation in opened.evaluate("test", threads=1).items():
        assert RankingMetrics.of(evaluation).metrics.items() <= last["clients"][name].items()
