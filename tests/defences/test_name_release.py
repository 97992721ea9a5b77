"""Names by a threshold in a federation: paid first, drawn once, and what is not released is in nothing that leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import PrivacyError
from fedkge.defences import check_defence, name_release
from fedkge.defences.advance import NAMES, SIZE
from fedkge.defences.name_release import NameFiles, with_released_names
from fedkge.defences.planning import client_defence
from fedkge.graph import Graph
from fedkge.graph.restricted import mentions, restricted, sole_mentions
from fedkge.graph.split import Shards, summarise
from fedkge.mechanisms.events import Names, Size
from fedkge.report.promised import gather_claim
from tests.defences.test_defence import defended

OPTIONS = {"defence": "recommended", "noise": None, "epsilon": 16.0, "names": "threshold", "rounds": 2}


def configuration(**options):
    return defended(**{**OPTIONS, **options})


def dense_graph(name="client-0", seed=1, rare=12):
    """Twenty names that many triples mention, and some that one triple alone mentions."""
    random = np.random.default_rng(seed)
    often = {(f"e{h}", f"r{r}", f"e{t}") for h, r, t in random.integers(0, (20, 3, 20), (600, 3)).tolist()}
    held = sorted(often)[::9]
    train = [*sorted(often - set(held)), *((f"secret{i}", "r0", f"e{i}") for i in range(rare))]
    return Graph.from_names(name, train=train, test=[*held, ("secret0", "r1", "e2")])


GRAPHS = (dense_graph(), dense_graph("client-1", 2))


def shards():
    return Shards("two", GRAPHS, summarise(GRAPHS))


def test_names_that_few_triples_mention_stay_at_home_with_their_triples():
    ledger, files = Ledger.in_memory(), NameFiles()
    kept = with_released_names(configuration(noise_seed=3), "client-0", GRAPHS[0], ledger, files)
    assert {name for name in GRAPHS[0].entities if name.startswith("e")} == set(kept.entities)
    names = set(kept.entities)
    for split in ("train", "test"):
        whole, small = GRAPHS[0].split(split), kept.split(split)
        assert 0 < len(small) < len(whole)
    assert len(kept.train) == sum(
        GRAPHS[0].entities[h] in names and GRAPHS[0].entities[t] in names for h, _, t in GRAPHS[0].train.tolist()
    )
    assert list(kept.relations) == list(GRAPHS[0].relations)


def test_size_and_names_are_paid_before_the_promise_and_within_the_budget():
    ledger, options = Ledger.in_memory(), configuration()
    kept = with_released_names(options, "client-0", GRAPHS[0], ledger, NameFiles())
    assert [type(charge.event) for charge in ledger.charges("client-0")] == [Size, Names]
    assert list(ledger.once("client-0")) == [SIZE, NAMES]
    defence = client_defence(options, "client-0", kept, ledger)
    planned = defence.planned(options.training.rounds)
    assert {type(charge.event) for charge in planned} >= {Size, Names}
    assert 15.5 < defence.accountant.epsilon(planned, defence.delta) <= 16.0
    assert ledger.promises["client-0"].facts.names == "threshold"
    assert ledger.promises["client-0"].delta == 1e-5


def test_a_run_trains_resumes_and_opens_with_the_same_names(tmp_path):
    run = start(configuration(noise_seed=None), shards().graphs, tmp_path / "run")
    names = [list(shard.entities) for shard in run.shards]
    assert not any("secret" in name for name in run.entities)
    assert all(len(own) > 10 for own in names)
    spent = run.epsilon()
    assert all(15.5 < value <= 16.0 for value in spent.values())
    lines = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    for again in (resume(tmp_path / "run", data=shards()), open_run(tmp_path / "run", data=shards())):
        assert [list(shard.entities) for shard in again.shards] == names
        assert again.epsilon() == spent
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == lines
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file() and path.name not in ("config.toml",):
            assert b"secret" not in path.read_bytes(), path


def test_a_run_whose_first_line_was_torn_is_resumed(tmp_path, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "adopt", kill)
        with pytest.raises(KeyboardInterrupt):
            start(configuration(noise_seed=None), shards().graphs, tmp_path / "run")
    (tmp_path / "run" / "ledger.jsonl").write_bytes(b'{"kind": "once", "what": "si')
    run = resume(tmp_path / "run", data=shards())
    assert all(15.5 < value <= 16.0 for value in run.epsilon().values())
    assert not any("secret" in name for name in run.entities)


def test_the_ledger_names_no_name_and_no_fingerprint_that_could_be_tried():
    fingerprints = set()
    for _ in range(3):
        ledger, files = Ledger.in_memory(), NameFiles()
        with_released_names(configuration(noise_seed=4), "client-0", GRAPHS[0], ledger, files)
        fingerprints.add(ledger.once("client-0")[NAMES].value)
        assert json.loads(files.read("client-0"))["released"][0] in GRAPHS[0].entities
    assert len(fingerprints) == 3, "the same names under three salts"


@pytest.mark.parametrize("moment", ["drawn", "filed", "paid"])
def test_killed_at_any_moment_names_are_drawn_once_or_never_used(tmp_path, monkeypatch, moment):
    path, files, options = tmp_path / "ledger.jsonl", NameFiles(tmp_path / "names"), configuration(noise_seed=None)

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if moment == "drawn":
            patched.setattr(NameFiles, "write", kill)
        if moment == "filed":
            true = Ledger.pay_once
            patched.setattr(Ledger, "pay_once", lambda *all: kill() if all[2] == NAMES else true(*all))
        if moment == "paid":
            patched.setattr(name_release, "_kept", kill)
        with pytest.raises(KeyboardInterrupt):
            with_released_names(options, "client-0", GRAPHS[0], Ledger.open(path), files)
    before = files.read("client-0")
    size = Ledger.read(path).once("client-0")[SIZE].value
    graph = with_released_names(options, "client-0", GRAPHS[0], Ledger.open(path), files)
    ledger = Ledger.open(path)
    assert ledger.once("client-0")[SIZE].value == size
    assert [type(charge.event) for charge in ledger.charges("client-0")] == [Size, Names]
    assert (files.read("client-0") == before) == (moment == "paid")
    again = with_released_names(options, "client-0", GRAPHS[0], ledger, files)
    assert list(again.entities) == list(graph.entities)


def test_names_that_do_not_belong_to_the_ledger_are_refused(tmp_path):
    path, files, options = tmp_path / "ledger.jsonl", NameFiles(tmp_path / "names"), configuration(noise_seed=None)
    with_released_names(options, "client-0", GRAPHS[0], Ledger.open(path), files)
    content = files.read("client-0")
    files.write("client-0", content.replace(b"e1", b"e2", 1))
    with pytest.raises(PrivacyError, match="found others in names/"):
        with_released_names(options, "client-0", GRAPHS[0], Ledger.open(path), files)
    with pytest.raises(PrivacyError, match="found no such file in names/"):
        with_released_names(options, "client-0", GRAPHS[0], Ledger.open(path), NameFiles(tmp_path / "other"))


def test_too_few_names_are_an_error_that_says_what_to_do():
    sparse = Graph.from_names("g", train=[(f"a{i}", "r", f"b{i}") for i in range(50)])
    with pytest.raises(PrivacyError, match=r"0 names reached the threshold .* give a list of names"):
        with_released_names(configuration(), "client-0", sparse, Ledger.in_memory(), NameFiles())


def test_a_client_whose_triples_all_stay_at_home_trains_all_the_same():
    """That none is left follows from more than the released names: nobody may notice it."""
    hubs = [("hub", "r", f"x{i}") for i in range(200)] + [(f"y{i}", "r", "axle") for i in range(200)]
    graphs = (Graph.from_names("client-0", train=hubs), dense_graph("client-1", 2))
    run = start(configuration(noise_seed=None, epsilon=8.0), graphs)
    assert set(run.shards[0].entities) == {"hub", "axle"}
    assert len(run.shards[0].train) == 0
    assert run.ledger.spent("client-0") > 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"defence": "none", "epsilon": None}, "paid from a budget"),
        ({"strategy": "pooled", "defence": "dpsgd"}, "pooled graph"),
        ({"canaries": 4}, "canaries take their names from triples"),
        ({"defence": "dpsgd", "epsilon": None, "noise": 2.0}, "share of the budget"),
        ({"defence": "dp-flames", "selection": "ptr-published"}, "do not know names"),
    ],
)
def test_what_does_not_go_with_a_threshold_is_refused(options, message):
    with pytest.raises(PrivacyError, match=message):
        check_defence(configuration(**options))


def test_the_report_says_where_names_come_from():
    for names, words in (
        ("from-triples", "no list was given, so the entity names come from the triples"),
        ("listed", "come from a list"),
    ):
        ledger, options = Ledger.in_memory(), configuration(names=names)
        client_defence(options, "client-0", GRAPHS[0], ledger)
        assert words in gather_claim(Path(), ledger, options).not_covered[0]
    ledger, options = Ledger.in_memory(), configuration()
    shard = with_released_names(options, "client-0", GRAPHS[0], ledger, NameFiles())
    client_defence(options, "client-0", shard, ledger)
    assert "Entity names are covered" in gather_claim(Path(), ledger, options).not_covered[0]


def test_restricted_graphs_and_sole_mentions():
    graph = GRAPHS[0]
    assert sole_mentions(graph) == 11, "secret0 is in a test triple too"
    same = restricted(graph, frozenset(graph.entities))
    np.testing.assert_array_equal(same.train, graph.train)
    assert not mentions(graph.train[:0], 5).any()
    alone = replace(graph, train=graph.train[:0])
    assert sole_mentions(alone) == 0
