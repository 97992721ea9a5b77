"""Views of recorded runs: what they hold beside rows, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.api.training import start
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration
from fedkge.experiments.recorded_views import recorded_view, shard_of
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.runs.round import Parties
from fedkge.runs.run import Run
from fedkge.runs.transcript import Transcript

GRAPH = synthetic_graph(entities=120, relations=4, triples=1500, seed=1)
SHARDS = split(GRAPH, clients=3, by="entity", seed=3, overlap=0.6)

TINY: dict[str, Any] = {
    "rounds": 3,
    "dimension": 8,
    "negatives": 8,
    "negative_group": 8,
    "batch_size": 32,
    "local_epochs": 1,
    "evaluate_every": 0,
    "learning_rate": 0.02,
    "seed": 5,
    "threads": 1,
    "record": "all",
    "clients": 3,
}


def tiny(**options: Any) -> Configuration:
    return Configuration.of(**{**TINY, **options})


def record(folder: Path, **options: Any) -> Run:
    """A federation of three small clients, kept in `folder`."""
    return start(tiny(**options), SHARDS.graphs, folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return record(tmp_path_factory.mktemp("recorded") / "run", canaries=60)


def test_a_client_is_found_by_name(run: Run) -> None:
    assert shard_of(run, "client-2") is run.shards[2]
    with pytest.raises(
        ConfigurationError, match="no client 'client-3' in this run: expected one of client-0, client-1"
    ):
        shard_of(run, "client-3")


def test_public_facts_are_those_of_the_configuration(run: Run) -> None:
    for kind in ("server", "client", "collusion"):
        view = recorded_view(run, kind, "client-0", "client-1")
        assert (view.adversary, view.victim, view.clients, view.rounds) == (kind, "client-0", 3, (1, 2, 3))
        assert (view.scorer.name, view.margin) == ("TransE", run.configuration.model.margin)
        assert view.until(2).rounds == (1, 2)
        assert view.rounds[-1] == 3


def test_the_server_counts_owners(run: Run) -> None:
    owners = recorded_view(run, "server", "client-0", "client-1").owners
    assert owners is not None
    for place, name in enumerate(run.entities):
        assert owners[place] == sum(name in shard.entities for shard in run.shards)


def test_own_triples_are_the_adversarys_by_name(run: Run) -> None:
    own = recorded_view(run, "client", "client-0", "client-2").own_triples
    assert own is not None
    shard = run.shards[2]
    named = {(run.entities[h], run.relations[r], run.entities[t]) for h, r, t in own.tolist()}
    assert named == {(shard.entities[h], shard.relations[r], shard.entities[t]) for h, r, t in shard.train.tolist()}
    assert len(own) == len(shard.train)


def test_a_server_may_attack_the_client_that_would_be_the_adversary(run: Run) -> None:
    assert recorded_view(run, "server", "client-1", "client-1").table(3, "upload") is not None
    for kind in ("client", "collusion"):
        with pytest.raises(ConfigurationError, match="the adversary and the victim are both client-1"):
            recorded_view(run, kind, "client-1", "client-1")


def test_unknown_clients_are_refused(run: Run) -> None:
    with pytest.raises(ConfigurationError, match="no client 'client-9'"):
        recorded_view(run, "server", "client-9", "client-1")
    with pytest.raises(ConfigurationError, match="no client 'client-9'"):
        recorded_view(run, "client", "client-0", "client-9")


def test_runs_without_a_record_say_what_to_do(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="attacks need a run with a directory and strategy fede"):
        recorded_view(replace(run, directory=None), "server", "client-0", "client-1")
    silent = record(tmp_path / "silent", record="none", rounds=1)
    with pytest.raises(RunError, match=r"nothing was recorded; train with --record every:5 \(or all\)") as caught:
        recorded_view(silent, "server", "client-0", "client-1")
    assert caught.value.exit_code == 6


@pytest.mark.parametrize("strategy", ["isolated", "fedr", "pooled"])
def test_strategies_that_share_no_entities_are_refused(tmp_path: Path, strategy: str) -> None:
    other = record(tmp_path / strategy, strategy=strategy, rounds=1)
    with pytest.raises(ConfigurationError, match="strategy fede, where entities are shared") as caught:
        recorded_view(other, "server", "client-0", "client-1")
    assert caught.value.exit_code == 4


def test_a_client_that_sat_all_recorded_rounds_out_has_no_view(tmp_path: Path) -> None:
    alone = record(tmp_path / "alone", fraction=0.34, rounds=1)
    (there,) = Transcript(tmp_path / "alone").read(1, Parties(server=True)).uploads
    absent = next(name for name in alone.clients if name != there)
    with pytest.raises(RunError, match=f"{absent} took part in no recorded round"):
        recorded_view(alone, "client", there, absent)
    view = recorded_view(alone, "collusion", there, absent)
    upload = view.table(1, "upload")
    assert upload is not None
    assert view.table(1, "own_upload") is None
    assert np.isfinite(upload).any()
