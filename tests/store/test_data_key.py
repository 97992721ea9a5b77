"""Digests of private data: keyed, recognised by whoever has the key, and of no use to anybody else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat

import numpy as np
import pytest

import fedkge as fk
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.statements import digest_of
from fedkge.api.ledgers import check_same_data, open_ledger
from fedkge.api.training import open_run, resume, train
from fedkge.base.errors import ConfigurationError, PrivacyError, RunError
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.store.data_key import FILE_NAME, DataKey, create_key, key_name, read_key, site_key
from fedkge.store.state_folder import VARIABLE, state_folder

KEY = DataKey(bytes(range(32)))
OPTIONS = {"rounds": 1, "dimension": 8, "negatives": 4, "seed": 1, "defence": "recommended", "epsilon": 8.0}
DIGITS = re.compile(r"[0-9a-f]{12,}")


@pytest.fixture(scope="module")
def shards():
    return split(synthetic_graph(entities=60, relations=4, triples=600, seed=1), clients=2, seed=7)


@pytest.fixture(scope="module")
def run(shards, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data-key") / "run"
    train(shards, out=folder, **OPTIONS)
    return folder


def plain_digests(graphs) -> set[str]:
    """What somebody without the key can compute of data that he guesses: hashes of its parts, bare and joined."""
    found = set()
    for group in (graphs, *((graph,) for graph in graphs)):
        whole = hashlib.sha256()
        for graph in group:
            bare = Graph("", graph.entities, graph.relations, graph.train)
            for one in (graph, bare):
                for names in (one.entities, one.relations):
                    whole.update(f"{len(names)}\n".encode() + "".join(f"{name}\n" for name in names).encode())
                for triples in (one.train, one.valid, one.test, one.elsewhere):
                    whole.update(f"{len(triples)}\n".encode() + triples.tobytes())
            found |= {whole.hexdigest(), hashlib.sha256(graph.train.tobytes()).hexdigest()}
    for graph in graphs:
        found |= {_as_before_keys([graph]), _as_before_keys([Graph("", graph.entities, graph.relations, graph.train)])}
    return {*found, _as_before_keys(graphs)}


def _as_before_keys(graphs) -> str:
    """The digest that stood in reports and ledgers before there were keys."""
    digest = hashlib.sha256()
    for graph in graphs:
        for names in (graph.entities, graph.relations):
            digest.update(f"{len(names)}\n".encode())
            for name in names:
                digest.update(name.encode() + b"\n")
        for triples in (graph.train, graph.valid, graph.test, graph.elsewhere):
            digest.update(f"{len(triples)}\n".encode() + triples.tobytes())
    return digest.hexdigest()


def test_a_digest_notices_every_change_of_the_data():
    graph = synthetic_graph(entities=30, relations=3, triples=200, seed=1)
    triples, names = graph.train, tuple(graph.entities)

    def changed(**parts):
        values = {"entities": graph.entities, "relations": graph.relations, "train": triples, "valid": graph.valid}
        return KEY.digest([Graph("g", **{**values, **parts}, test=graph.test)])

    digests = [
        changed(),
        changed(train=triples[:-1], valid=np.concatenate([triples[-1:], graph.valid])),
        changed(train=triples[::-1].copy()),
        changed(train=triples[:-1]),
        changed(entities=Vocabulary((names[1], names[0], *names[2:]))),
        changed(entities=Vocabulary((f"{names[0]}\n", *names[1:]))),
        changed(entities=Vocabulary((*names, "one more"))),
        KEY.digest([graph, graph]),
    ]
    assert len(set(digests)) == len(digests)
    assert changed() == KEY.digest([graph])
    assert DataKey(bytes(32)).digest([graph]).partition(":")[2] not in {one.partition(":")[2] for one in digests}


def test_no_file_of_a_run_holds_a_hash_that_can_be_tried_out(run, shards):
    guesses = {digest[:12] for digest in plain_digests(tuple(shards))}
    for path in sorted(run.rglob("*")):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            assert not {found[:12] for found in DIGITS.findall(text)} & guesses, path
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    digests = [line["facts"]["data"] for line in lines if line["kind"] == "promise"]
    assert len(set(digests)) == len(shards)
    assert {key_name(digest) for digest in digests} == {site_key().name}


def test_keys_are_for_their_owner_alone(run):
    for path in (run / FILE_NAME, state_folder() / FILE_NAME):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert KEY.secret.hex() not in repr(read_key(path))
        assert read_key(path).secret.hex() not in repr(read_key(path))
    assert read_key(run / FILE_NAME) != site_key()


def test_the_same_triples_in_two_runs_are_recognised(run, shards, tmp_path):
    train(shards, out=tmp_path / "again", **{**OPTIONS, "seed": 2})
    first, second = Ledger.read(run / "ledger.jsonl"), Ledger.read(tmp_path / "again" / "ledger.jsonl")
    assert [digest_of(first, name) for name in first.clients] == [digest_of(second, name) for name in second.clients]
    check_same_data([open_ledger(run), open_ledger(tmp_path / "again")])


def test_other_data_is_refused_under_one_key_and_unknown_under_two(run, tmp_path, monkeypatch):
    others = split(synthetic_graph(entities=60, relations=4, triples=600, seed=2), clients=2, seed=7)
    train(others, out=tmp_path / "others", **OPTIONS)
    with pytest.raises(ConfigurationError, match="different data, or other shards"):
        check_same_data([open_ledger(run), open_ledger(tmp_path / "others")])
    monkeypatch.setenv(VARIABLE, str(tmp_path / "another user"))
    train(others, out=tmp_path / "elsewhere", **OPTIONS)
    check_same_data([open_ledger(run), open_ledger(tmp_path / "elsewhere")])  # counted by the costliest client


def test_a_run_without_its_key_says_so(run, shards, tmp_path):
    key = (run / FILE_NAME).rename(tmp_path / "kept")
    for verb in (resume, open_run):
        with pytest.raises(RunError, match=r"data\.key: missing.*Restore it from a copy"):
            verb(run, data=shards)
    create_key(run / FILE_NAME)
    with pytest.raises(RunError, match="They are not of one run"):
        open_run(run, data=shards)
    (run / FILE_NAME).unlink()
    key.rename(run / FILE_NAME)
    open_run(run, data=shards)


def test_other_data_is_still_refused(run, shards):
    graphs = list(shards)
    first = graphs[0]
    graphs[0] = Graph(first.name, first.entities, first.relations, first.train[1:], first.valid, first.test)
    with pytest.raises(RunError, match="was trained on other data"):
        resume(run, data=fk.Shards(shards.name, tuple(graphs), shards.summary))


@pytest.mark.parametrize(
    ("content", "mode", "error", "words"),
    [
        ("00" * 32, 0o644, PrivacyError, "only its owner can read, got permissions 0644"),
        ("00" * 31, 0o600, RunError, "expected 64 hexadecimal digits"),
        ("zz" * 32, 0o600, RunError, "expected 64 hexadecimal digits"),
        ("fedkge-consortium-key-1 " + "0123456789abcdef" * 4, 0o600, RunError, "expected 64 hexadecimal digits"),
        ("", 0o600, RunError, "expected 64 hexadecimal digits"),
    ],
)
def test_bad_key_files(tmp_path, content, mode, error, words):
    path = tmp_path / FILE_NAME
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(error, match=words):
        read_key(path)


def test_a_key_is_made_once(tmp_path):
    first = create_key(tmp_path / "deep" / FILE_NAME)
    assert create_key(tmp_path / "deep" / FILE_NAME) == first
    assert os.listdir(tmp_path / "deep") == [FILE_NAME]


def test_a_run_in_memory_writes_no_key(shards, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "state"))
    assert train(shards, **OPTIONS).ledger is not None
    assert not (tmp_path / "state").exists()
