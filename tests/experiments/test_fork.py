"""A fork goes on exactly as the federation would have, and leaves the recorded run alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.experiments.cia import CIA
from fedkge.experiments.fork import ForkedClient
from fedkge.federation.aggregation import AGGREGATIONS
from fedkge.federation.claimed_weights import Index
from fedkge.models.tables import Table
from fedkge.runs.round import Parties, Rows
from fedkge.runs.run import Run
from fedkge.runs.transcript import Transcript
from tests.experiments.test_recorded_views import record

ADVERSARY = "client-1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    # An odd number of steps per round: which side is corrupted next then depends on the rounds before.
    return record(tmp_path_factory.mktemp("fork") / "run", local_steps=7, rounds=4)


def rows_of(run: Run, number: int, kind: str, client: str = ADVERSARY) -> Table:
    """A client's recorded rows, as a table of the run with NaN elsewhere."""
    assert run.directory is not None
    seen = Transcript(run.directory).read(number, Parties(server=True))
    rows = getattr(seen, kind)[client]["entities"]
    table = np.full((len(run.entities), rows.shape[1]), np.nan, dtype=np.float32)
    for row, name in zip(rows, run.shards[run.clients.index(client)].entities, strict=True):
        table[run.entities.index[name]] = row
    return table


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_honest_upload_gives_the_recorded_result(run: Run, number: int) -> None:
    client = ForkedClient(run, number, ADVERSARY)
    np.testing.assert_array_equal(client.upload, rows_of(run, number, "uploads"))
    np.testing.assert_array_equal(client.submit(client.upload), rows_of(run, number, "results"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"aggregation": "weighted"},
        {"learning_rate_decay": 0.5},
        {"model": "complex"},
        {"model": "rotate", "local_steps": 0},
    ],
    ids=str,
)
def test_honest_submits_go_on_as_the_federation_did(run: Run, tmp_path: Path, options: dict[str, object]) -> None:
    if options:
        run = record(tmp_path / "run", **{"local_steps": 7, "rounds": 4, **options})
    client = ForkedClient(run, 1, ADVERSARY)
    for number in (1, 2, 3, 4):
        received = client.submit(rows_of(run, number, "uploads"))
        np.testing.assert_array_equal(received, rows_of(run, number, "results"), err_msg=f"round {number}")


class FirstClient:
    """A toy rule: the first client that owns a row decides."""

    name: ClassVar[str] = "weighted"
    uses_claims: ClassVar[bool] = False

    def aggregate(
        self,
        table: Rows,
        uploads: Mapping[str, Rows],
        owners: Mapping[str, Index],
        claims: Mapping[str, float],  # noqa: ARG002
    ) -> Rows:
        result = table.copy()
        for name in sorted(uploads, reverse=True):
            result[owners[name]] = uploads[name]
        return result


def test_a_fork_aggregates_by_the_registered_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is registered is what the federation averages by, and what CIA's forks average by."""
    monkeypatch.setitem(AGGREGATIONS, FirstClient.name, FirstClient)
    run = record(tmp_path / "run", rounds=3, aggregation=FirstClient.name)
    client = ForkedClient(run, 1, ADVERSARY)
    for number in (1, 2, 3):
        received = client.submit(rows_of(run, number, "uploads"))
        np.testing.assert_array_equal(received, rows_of(run, number, "results"), err_msg=f"round {number}")
    shared = rows_of(run, 3, "uploads", "client-0")
    known = np.isfinite(shared[:, 0]) & np.isfinite(received[:, 0])
    np.testing.assert_array_equal(received[known], shared[known])


@pytest.mark.parametrize("adversary", ["client-0", "client-2"])
def test_any_client_can_be_the_adversary(run: Run, adversary: str) -> None:
    client = ForkedClient(run, 2, adversary)
    for number in (2, 3):
        received = client.submit(rows_of(run, number, "uploads", adversary))
        np.testing.assert_array_equal(received, rows_of(run, number, "results", adversary))


def test_a_dishonest_upload_has_its_share_of_the_mean_and_no_more(run: Run) -> None:
    lie = rows_of(run, 2, "uploads")
    victim = int(np.flatnonzero(np.isfinite(lie[:, 0]))[0])
    lie[victim] *= -1
    received = ForkedClient(run, 2, ADVERSARY).submit(lie)
    owners = [
        name for name, shard in zip(run.clients, run.shards, strict=True) if run.entities[victim] in shard.entities
    ]
    mean = np.mean([lie[victim] if n == ADVERSARY else rows_of(run, 2, "uploads", n)[victim] for n in owners], axis=0)
    np.testing.assert_allclose(received[victim], mean, rtol=1e-5)
    honest = rows_of(run, 2, "results")
    others = np.arange(len(honest)) != victim
    np.testing.assert_array_equal(received[others], honest[others])


def test_a_forked_client_holds_its_own_relations_only(run: Run) -> None:
    assert run.directory is not None
    client = ForkedClient(run, 3, ADVERSARY)
    own = Transcript(run.directory).read(3, Parties.of(ADVERSARY)).private[ADVERSARY]["relations"]
    relations = client.embedding.tables.relations
    known = {name: row for row, name in zip(own, run.shards[1].relations, strict=True)}
    for place, name in enumerate(run.relations):
        if name in known:
            np.testing.assert_array_equal(relations[place], known[name])
        else:
            assert np.isnan(relations[place]).all()
    assert client.embedding.margin == run.configuration.model.margin


def test_forks_leave_every_file_and_each_other_alone(run: Run) -> None:
    assert run.directory is not None
    before, tensors = hashes(run.directory), {key: table.copy() for key, table in run.tensors.items()}
    first = [ForkedClient(run, 2, ADVERSARY) for _ in range(2)]
    upload = first[0].upload
    lies = first[0].submit(-upload), first[0].submit(-upload)
    truths = first[1].submit(upload), first[1].submit(rows_of(run, 3, "uploads"))
    np.testing.assert_array_equal(truths[1], rows_of(run, 3, "results"))
    assert not np.array_equal(lies[1], truths[1], equal_nan=True)
    shared = run.shards[0].train[:6].copy()
    CIA(2, 2).play(lambda: ForkedClient(run, 2, "client-0"), shared)
    assert hashes(run.directory) == before
    for key, table in tensors.items():
        np.testing.assert_array_equal(run.tensors[key], table)


def test_what_cannot_be_forked(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no client 'client-7'"):
        ForkedClient(run, 1, "client-7")
    with pytest.raises(RunError, match="round 9 was not recorded"):
        ForkedClient(run, 9, ADVERSARY)
    with pytest.raises(ConfigurationError, match="strategy fede and --out"):
        ForkedClient(replace(run, directory=None), 1, ADVERSARY)
    isolated = record(tmp_path / "isolated", strategy="isolated", rounds=1)
    with pytest.raises(ConfigurationError, match="strategy fede and --out"):
        ForkedClient(isolated, 1, ADVERSARY)


def test_a_round_that_some_sat_out(tmp_path: Path) -> None:
    """Rows that nobody uploaded stay as they were; only those who took part have a client."""
    few = record(tmp_path / "few", fraction=0.34, rounds=2)
    assert few.directory is not None
    (there,) = Transcript(few.directory).read(2, Parties(server=True)).uploads
    client = ForkedClient(few, 2, there)
    np.testing.assert_array_equal(client.submit(client.upload), rows_of(few, 2, "results", there))
    absent = next(name for name in few.clients if name != there)
    with pytest.raises(ConfigurationError, match=f"{absent} sent no upload in round 2"):
        ForkedClient(few, 2, absent)
