"""A disk that fills up stops the run, and does not change what comes out of it in the end."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from fedkge.api.training import resume, start
from fedkge.base.errors import PrivacyError
from fedkge.federation.observer import Observer
from fedkge.runs.account import open_account
from fedkge.store.durable_files import StorageError, load_tensors
from tests.federation.crash_runs import DEFENCES
from tests.short_runs import short

KINDS = {"open": short(), **{kind: short(**options, noise_seed=4) for kind, options in DEFENCES.items()}}


@pytest.fixture(scope="module")
def undisturbed(shards, tmp_path_factory):
    """For each kind the model that comes out where nothing goes wrong."""
    models = {}
    for kind, configuration in KINDS.items():
        folder = tmp_path_factory.mktemp(kind) / "run"
        start(configuration, shards.graphs, folder)
        models[kind] = (folder / "model.safetensors").read_bytes()
    return models


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of one mebibyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "fedkge-test", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


class Filler(Observer):
    """Fills the disk when the first round is over, but for `free` bytes."""

    def __init__(self, disk: Path, free: int) -> None:
        self._ballast, self._free = disk / "ballast", free

    def round_done(self, facts):
        if facts["round"] == 1:
            space = os.statvfs(self._ballast.parent)
            self._ballast.write_bytes(b"0" * (space.f_bavail * space.f_frsize - self._free))

    def empty(self):
        self._ballast.unlink()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kibibytes", [0, 8, 16])
def test_a_disk_that_is_really_full(small_disk, shards, undisturbed, kind, kibibytes):
    """Some clients can keep their round and some cannot: nobody may be left out of it silently."""
    run, filler = small_disk / "run", Filler(small_disk, free=kibibytes * 1024)
    with pytest.raises((StorageError, PrivacyError), match="No space left on device") as caught:
        start(KINDS[kind].updated(threads=2), shards.graphs, run, observer=filler)
    assert caught.value.exit_code in (6, 8)
    facts = load_tensors(run / "checkpoints" / "server.safetensors")[1]
    clients = ("client-0", "client-1", "client-2") if facts["round"] else ()
    assert facts["memory"]["delivered"] == dict.fromkeys(clients, facts["round"])
    filler.empty()
    finished = resume(run, data=shards)
    assert (run / "model.safetensors").read_bytes() == undisturbed[kind]
    assert (finished.ledger is None) == (open_account(run) is None)


def full_for(client, monkeypatch, call="fsync"):
    """No space for this client's state, whatever else can be written."""
    genuine = getattr(os, call)

    def fail(descriptor):
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.startswith(f"{client}.safetensors"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return genuine(descriptor)

    monkeypatch.setattr(os, call, fail)


class After(Observer):
    """Does something once, when the first round is over."""

    def __init__(self, action):
        self._action = action

    def round_done(self, facts):
        if facts["round"] == 1:
            self._action()


@pytest.mark.parametrize("kind", KINDS)
def test_one_client_without_space_stops_the_run_and_resume_gives_the_same_model(
    shards, tmp_path, monkeypatch, undisturbed, kind
):
    with monkeypatch.context() as patched:
        fill = After(lambda: full_for("client-1", patched))
        with pytest.raises(StorageError, match=r"client-1.safetensors: could not be written .*`fedkge resume`"):
            start(KINDS[kind], shards.graphs, tmp_path / "run", observer=fill)
    resume(tmp_path / "run", data=shards)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == undisturbed[kind]


def test_it_goes_on_without_the_client_where_the_user_has_allowed_fewer(shards, tmp_path, monkeypatch):
    left_out = []

    class Listener(After):
        def round_done(self, facts):
            super().round_done(facts)
            left_out.extend(facts["refused"])

    configuration = KINDS["defended"].updated(minimum_clients=2)
    with monkeypatch.context() as patched:
        start(configuration, shards.graphs, tmp_path, observer=Listener(lambda: full_for("client-1", patched)))
    assert left_out == ["client-1", "client-1"]


@pytest.mark.parametrize("minimum", [None, 3])
def test_saying_that_all_are_needed_allows_nothing(shards, tmp_path, monkeypatch, minimum):
    configuration = KINDS["open"].updated(minimum_clients=minimum)
    with monkeypatch.context() as patched, pytest.raises(StorageError):
        start(configuration, shards.graphs, tmp_path, observer=After(lambda: full_for("client-1", patched)))
    config = tmp_path / "config.toml"
    assert ("minimum-clients" in config.read_text()) == (minimum is not None), "a default is no permission later"


def test_a_ledger_that_cannot_be_written_stops_the_run_whoever_may_be_missing(
    shards, tmp_path, monkeypatch, undisturbed
):
    configuration = KINDS["defended"].updated(minimum_clients=1)
    genuine = os.fsync

    def fail(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("ledger.jsonl"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        genuine(descriptor)

    with monkeypatch.context() as patched:
        fill = After(lambda: patched.setattr(os, "fsync", fail))
        with pytest.raises(PrivacyError, match=r"ledger.jsonl: could not be written \(No space left on device\)"):
            start(configuration, shards.graphs, tmp_path, observer=fill)
    resume(tmp_path, data=shards)
    assert (tmp_path / "model.safetensors").read_bytes() == undisturbed["defended"]
