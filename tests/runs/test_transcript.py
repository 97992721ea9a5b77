from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.federation.messages import Failure
from fedkge.federation.server import Server, ServerPlan
from fedkge.federation.training import Federation
from fedkge.runs.directory import RunDirectory
from fedkge.runs.round import Parties
from fedkge.runs.run import shape_of
from fedkge.runs.transcript import Transcript, recorded_rounds
from tests.short_runs import Mischief, make_clients, short

NAMES = ["client-0", "client-1", "client-2"]


@pytest.mark.parametrize(
    ("rule", "rounds"),
    [("none", []), ("all", [1, 2, 3, 4, 5, 6, 7]), ("every:3", [3, 6]), ("every:9", []), ("1,5", [1, 5]), ("7", [7])],
)
def test_rules(rule, rounds):
    assert sorted(recorded_rounds(rule, 7)) == rounds


@pytest.mark.parametrize("rule", ["", "some", "every:", "every:0", "every:-2", "every:x", "1,,2", "1;2"])
def test_bad_rules_say_what_was_expected(rule):
    with pytest.raises(ConfigurationError, match="record: expected none, all, every:N or a list like 1,5,10; got"):
        recorded_rounds(rule, 7)


@pytest.mark.parametrize("rule", ["0", "8", "1,8", "-1"])
def test_rounds_that_do_not_exist_cannot_be_recorded(rule):
    with pytest.raises(ConfigurationError, match="record: expected rounds from 1 to 7"):
        recorded_rounds(rule, 7)


@given(st.sets(st.integers(1, 50), min_size=1))
def test_lists_mean_themselves(rounds):
    assert recorded_rounds(",".join(map(str, rounds)), 50) == rounds


@pytest.fixture
def recorded(shards, tmp_path):
    """Three rounds, of which the first and the last are recorded; client-2 fails in the last."""
    configuration = short()
    engine = Mischief(make_clients(shards, configuration))
    engine.spoil[3, "client-2"] = lambda _: Failure("client-2", "away")
    server = Server(engine, ServerPlan(shape_of(configuration), seed=5))
    transcript, reports = Transcript(tmp_path), {}
    for number in (1, 2, 3):
        reports[number] = server.run_round()
        if number != 2:
            transcript.write(reports[number].messages())
    return transcript, reports


def equal(seen, report, broadcasts, uploads):
    assert set(seen.broadcasts) == set(broadcasts)
    assert set(seen.uploads) == set(uploads)
    for name in broadcasts:
        np.testing.assert_array_equal(seen.broadcasts[name]["entities"], report.broadcasts[name]["entities"])
    for name in uploads:
        np.testing.assert_array_equal(seen.uploads[name]["entities"], report.uploads[name].rows["entities"])


def test_the_server_sees_every_message(recorded):
    transcript, reports = recorded
    server = Parties(server=True)
    assert transcript.rounds(server) == transcript.rounds() == [1, 3]
    equal(transcript.read(1, server), reports[1], NAMES, NAMES)
    equal(transcript.read(3, server), reports[3], NAMES, NAMES[:2])


@pytest.mark.parametrize("name", NAMES)
def test_a_client_sees_its_own_messages_only(recorded, name):
    transcript, reports = recorded
    equal(transcript.read(1, Parties.of(name)), reports[1], [name], [name])
    equal(transcript.read(3, Parties.of(name)), reports[3], [name], [name] if name != "client-2" else [])


def test_a_collusion_sees_the_union(recorded):
    transcript, reports = recorded
    equal(transcript.read(1, Parties.of("client-0", "client-2")), reports[1], NAMES[::2], NAMES[::2])
    equal(transcript.read(1, Parties.of("client-1", server=True)), reports[1], NAMES, NAMES)


def test_who_looks_cannot_be_widened(recorded):
    parties = Parties.of("client-0")
    for attribute, value in (("server", True), ("clients", frozenset(NAMES)), ("anything", 1)):
        with pytest.raises((AttributeError, TypeError)):
            setattr(parties, attribute, value)
    assert not hasattr(parties, "__dict__")
    assert {name for name in dir(parties) if not name.startswith("_")} == {"clients", "hold", "of", "server"}
    assert isinstance(parties.clients, frozenset)
    recorded[0].read(1, parties).uploads.update({"client-1": {}})
    assert set(recorded[0].read(1, parties).uploads) == {"client-0"}


@pytest.mark.parametrize("name", ["*", "client-*", "client-?", "../round-000001/upload-client-1", "", "CLIENT-1"])
def test_odd_names_open_nothing(recorded, name):
    parties = Parties.of(name)
    assert recorded[0].rounds(parties) == []
    seen = recorded[0].read(1, parties)
    assert (seen.broadcasts, seen.uploads) == ({}, {})


def test_nobody_sees_nothing():
    for nobody in (Parties, Parties.of):
        with pytest.raises(ConfigurationError, match="expected at least one party"):
            nobody()


@pytest.mark.parametrize("number", [0, 2, 4])
def test_a_round_that_was_not_recorded_says_so(recorded, number):
    with pytest.raises(RunError, match=f"round {number} was not recorded: train with --record"):
        recorded[0].read(number, Parties(server=True))


def test_writing_a_round_again_forgets_what_a_crash_left(recorded, tmp_path):
    transcript, reports = recorded
    folder = tmp_path / "transcript" / "round-000003"
    (folder / "upload-client-2.safetensors").write_bytes((folder / "upload-client-1.safetensors").read_bytes())
    (folder / "upload-client-1.safetensors.partial").write_bytes(b"half")
    transcript.write(reports[3].messages())
    equal(transcript.read(3, Parties(server=True)), reports[3], NAMES, NAMES[:2])
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize(("strategy", "private"), [("fede", "relations"), ("fedr", "entities")])
def test_private_tables_are_their_holders_alone(shards, tmp_path, strategy, private):
    configuration = short(strategy=strategy, record="all", rounds=2)
    directory = RunDirectory(tmp_path)
    directory.create(configuration, {})
    federation = Federation(tuple(shards), configuration, directory)
    federation.run()
    transcript = Transcript(tmp_path)
    for number in (1, 2):
        assert transcript.read(number, Parties(server=True)).private == {}
        assert set(transcript.read(number, Parties(server=True)).results) == set(NAMES)
        for name in NAMES:
            seen = transcript.read(number, Parties.of(name))
            assert set(seen.private) == set(seen.results) == {name}
            assert set(seen.private[name]) == {private}
        assert set(transcript.read(number, Parties.of("client-1", server=True)).private) == {"client-1"}
    tables = {"entities": federation.clients["client-0"].embedding.tables.entities}
    tables["relations"] = federation.clients["client-0"].embedding.tables.relations
    last = transcript.read(2, Parties.of("client-0"))
    np.testing.assert_array_equal(last.private["client-0"][private], tables[private])
    for sent, result in zip(
        transcript.read(2, Parties(server=True)).broadcasts.values(),
        transcript.read(1, Parties(server=True)).results.values(),
        strict=True,
    ):
        assert {kind: rows.tobytes() for kind, rows in sent.items()} == {k: r.tobytes() for k, r in result.items()}
