from __future__ import annotations

import errno
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.numpy import load

from fedkge.base.errors import RunError
from fedkge.graph import Vocabulary
from fedkge.runs.directory import RunDirectory, escape, unescape
from fedkge.store.durable_files import (
    StorageError,
    load_tensors,
    make_folder,
    save_tensors,
    write_atomically,
    write_tensors_beside,
)

ANY_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
SHAPES = array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=5)
TENSORS = st.dictionaries(
    st.text("abcxyz/-", min_size=1, max_size=8),
    st.sampled_from([np.float32, np.float64, np.int32, np.int64]).flatmap(lambda dtype: arrays(dtype, SHAPES)),
    max_size=4,
)
FACTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.floats(allow_nan=False))


@ANY_FOLDER
@given(TENSORS, FACTS)
def test_tensors_come_back_and_others_can_read_them(tmp_path, tensors, facts):
    path = tmp_path / "a.safetensors"
    save_tensors(path, tensors, facts)
    first = path.read_bytes()
    found, found_facts = load_tensors(path)
    assert found_facts == facts
    for reader in (found, load(first)):
        assert {name: (t.dtype, t.shape, t.tobytes()) for name, t in reader.items()} == {
            name: (t.dtype, t.shape, t.tobytes()) for name, t in tensors.items()
        }
    save_tensors(path, dict(reversed(tensors.items())), facts)
    assert path.read_bytes() == first


def test_views_that_are_not_contiguous_are_saved_right(tmp_path):
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_tensors(tmp_path / "a", {"t": table.T, "every second": table[:, ::2]}, {})
    found, _ = load_tensors(tmp_path / "a")
    np.testing.assert_array_equal(found["t"], table.T)
    np.testing.assert_array_equal(found["every second"], table[:, ::2])


def test_every_flipped_byte_and_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": np.arange(8, dtype=np.float32), "y": np.arange(3, dtype=np.int64)}, {"round": 3})
    whole = path.read_bytes()
    expected, _ = load_tensors(path)
    silent = 0
    for place in range(len(whole)):
        for bad in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            path.write_bytes(bad)
            try:
                found, facts = load_tensors(path)
            except RunError as error:
                assert "expected a safetensors file, got a damaged one" in str(error)  # noqa: PT017
                assert "start again with --overwrite" in str(error)  # noqa: PT017
                continue
            # What passes must be harmless: padding, or the same numbers.
            silent += 1
            assert facts == {"round": 3}
            assert {name: t.tolist() for name, t in found.items()} == {name: t.tolist() for name, t in expected.items()}
    assert silent <= 8


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(RunError, match="nothing: no such file"):
        load_tensors(tmp_path / "nothing")


@pytest.mark.parametrize("call", ["fsync", "replace", "open", "write"])
def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, call):
    path = tmp_path / "a"
    write_atomically(path, b"old")
    full_disk(monkeypatch, call)
    with pytest.raises(RunError, match=r"a: could not be written \(No space left on device\); free some space"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_tensors_whose_name_cannot_be_synced_leave_no_litter(tmp_path, monkeypatch):
    def fail(_folder):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("fedkge.store.durable_files.sync_folder", fail)
    with pytest.raises(StorageError, match="could not be written"):
        write_tensors_beside(tmp_path / "a", {"x": np.zeros(2)}, {})
    assert list(tmp_path.iterdir()) == []


def full_disk(monkeypatch, call):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class FullFile:
        def __init__(self, file):
            self._file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def write(self, content):
            self._file.write(bytes(content)[:1])
            fail()

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif call == "replace":
        monkeypatch.setattr("pathlib.Path.replace", fail)
    elif call == "open":
        monkeypatch.setattr("pathlib.Path.open", fail)
    else:
        genuine = Path.open
        monkeypatch.setattr("pathlib.Path.open", lambda *a, **k: FullFile(genuine(*a, **k)))


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "file").write_text("I am a file")
    with pytest.raises(RunError, match="could not be written"):
        write_atomically(tmp_path / "file" / "a", b"")
    with pytest.raises(RunError, match=r"cannot be made .*choose another --out"):
        make_folder(tmp_path / "file" / "run")
    with pytest.raises(RunError, match="cannot be made"):
        make_folder(tmp_path / "file")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc, where nobody can make files")
def test_a_read_only_folder():
    with pytest.raises(RunError, match="cannot be made"):
        make_folder(Path("/proc/fedkge/run"))
    with pytest.raises(RunError, match="/proc/a: could not be written"):
        write_atomically(Path("/proc/a"), b"")


@given(st.text(st.characters(codec="utf-8")))
def test_names_survive_on_one_line(name):
    assert "\n" not in escape(name)
    assert "\r" not in escape(name)
    assert unescape(escape(name)) == name


@ANY_FOLDER
@given(
    st.lists(st.text(st.characters(codec="utf-8")), unique=True), st.lists(st.text("\\nr\n\r", max_size=4), unique=True)
)
def test_vocabularies_come_back(tmp_path, entities, relations):
    directory = RunDirectory(tmp_path)
    directory.write_vocabularies(Vocabulary(tuple(entities)), Vocabulary(tuple(relations)))
    found = directory.read_vocabularies()
    assert [list(vocabulary) for vocabulary in found] == [entities, relations]


def test_damaged_metrics_say_where(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"round": 1}\n{"rou')
    with pytest.raises(RunError, match=r"metrics.jsonl:2: expected JSON, got: "):
        RunDirectory(tmp_path).read_metrics()
    (tmp_path / "metrics.jsonl").write_text('{"round": 1}\n')
    with pytest.raises(RunError, match=r"metrics.jsonl:1: tail.realistic.mrr: Field required"):
        RunDirectory(tmp_path).read_metrics()
    assert RunDirectory(tmp_path / "empty").read_metrics() == []


def test_random_damage_to_json_headers(tmp_path):
    """Whatever a header turns into, the answer is a RunError or the truth."""
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": np.zeros((2, 2), np.float32)}, {"round": 1})
    whole, rng = bytearray(path.read_bytes()), random.Random(3)
    size = int.from_bytes(whole[:8], "little")
    json.loads(whole[8 : 8 + size])
    for _ in range(200):
        bad = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(8 + size)] = rng.randrange(256)
        path.write_bytes(bad)
        try:
            tensors, facts = load_tensors(path)
        except RunError:
            continue
        assert facts == {"round": 1}
        assert tensors["x"].tolist() == [[0, 0], [0, 0]]
