"""A view never holds another party's state: checked row by row against what really went over the wire."""

from __future__ import annotations

import gc
import shutil
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from fedkge.attacks import ATTACKS
from fedkge.experiments.recorded_views import recorded_view
from fedkge.experiments.targets import draw_targets, pool_of
from fedkge.federation.training import Federation
from fedkge.graph import Graph
from fedkge.runs.directory import RunDirectory
from fedkge.runs.round import Rows
from fedkge.runs.run import Run
from fedkge.runs.view import Adversary, Piece, View
from tests.experiments.test_recorded_views import SHARDS, tiny

VICTIM, CLIENT, THIRD = "client-0", "client-1", "client-2"
PIECES: tuple[Piece, ...] = get_args(Piece)


@dataclass
class Truth:
    """What went to and from each client in one round, and what each kept, copied as it happened."""

    broadcasts: dict[str, Rows]
    uploads: dict[str, Rows]
    results: dict[str, Rows]
    relations: dict[str, Rows]


@dataclass
class Witnessed:
    run: Run
    rounds: dict[int, Truth]


def witness(folder: Path, fraction: float) -> Witnessed:
    """Run a recorded federation and note everything beside it, without the transcript's help."""
    configuration = tiny(fraction=fraction, rounds=8 if fraction < 1 else 2)
    directory = RunDirectory(folder)
    directory.create(configuration, {})
    federation, rounds = Federation(tuple(SHARDS), configuration, directory), {}
    honest = federation.server.run_round

    def run_round() -> Any:
        report = honest()
        names = federation.clients
        rounds[report.round] = Truth(
            {name: rows["entities"].copy() for name, rows in report.broadcasts.items()},
            {name: upload.rows["entities"].copy() for name, upload in report.uploads.items()},
            {name: federation.server.rows_for(name)["entities"].copy() for name in names},
            {name: federation.clients[name].embedding.tables.relations.copy() for name in names},
        )
        return report

    federation.server.run_round = run_round  # type: ignore[method-assign]
    return Witnessed(federation.run(), rounds)


@pytest.fixture(scope="module", params=[1.0, 0.67], ids=["all take part", "two of three take part"])
def witnessed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Witnessed:
    return witness(tmp_path_factory.mktemp("witnessed") / "run", request.param)


def by_name(run: Run, client: str, rows: Rows | None, relations: bool = False) -> dict[str, bytes] | None:
    """A client's rows by the name that they belong to."""
    shard = run.shards[run.clients.index(client)]
    names = shard.relations if relations else shard.entities
    return None if rows is None else {name: rows[place].tobytes() for place, name in enumerate(names)}


def held(run: Run, view: View, number: int, piece: Piece) -> dict[str, bytes] | None:
    """The rows that a view holds of a round, by name; every other row must be NaN throughout."""
    table = view.table(number, piece)
    assert view.holds(number, piece) == (table is not None)
    if table is None:
        return None
    names = run.relations if piece == "relations" else run.entities
    assert len(table) == len(names)
    known = ~np.isnan(table).all(axis=1)
    assert np.isfinite(table[known]).all()
    return {names[place]: table[place].tobytes() for place in np.flatnonzero(known)}


def expected(run: Run, truth: Truth, kind: Adversary, piece: Piece) -> dict[str, bytes] | None:
    """What a party of this kind may hold, from the truth alone."""
    if piece == "relations":
        return None if kind == "server" else by_name(run, CLIENT, truth.relations[CLIENT], relations=True)
    if piece == "own_upload":
        return None if kind == "server" else by_name(run, CLIENT, truth.uploads.get(CLIENT))
    if piece == "upload":
        return None if kind == "client" else by_name(run, VICTIM, truth.uploads.get(VICTIM))
    about = CLIENT if kind == "client" else VICTIM
    if piece == "sent":
        return by_name(run, about, truth.broadcasts.get(about))
    told = kind != "client" or about in truth.uploads
    return by_name(run, about, truth.results[about] if told else None)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("kind", get_args(Adversary))
def test_each_party_holds_exactly_what_it_sent_and_was_sent(
    witnessed: Witnessed, kind: Adversary, piece: Piece
) -> None:
    run = witnessed.run
    view = recorded_view(run, kind, VICTIM, CLIENT)
    for number, truth in witnessed.rounds.items():
        assert held(run, view, number, piece) == expected(run, truth, kind, piece), number


def test_the_fraction_left_somebody_out(witnessed: Witnessed) -> None:
    """Otherwise the test above would show nothing about rounds that a client sat out."""
    absent = {name: [n for n, t in witnessed.rounds.items() if name not in t.uploads] for name in witnessed.run.clients}
    if witnessed.run.configuration.federation.fraction < 1:
        assert absent[CLIENT]
        assert absent[VICTIM]
        rounds = recorded_view(witnessed.run, "client", VICTIM, CLIENT).rounds
        assert set(rounds) == set(witnessed.rounds) - set(absent[CLIENT])
    else:
        assert not any(absent.values())


def test_what_each_view_holds_beside_rows(witnessed: Witnessed) -> None:
    run, auxiliary = witnessed.run, SHARDS[0].train[:5]
    server, client, collusion = (
        recorded_view(run, kind, VICTIM, CLIENT, auxiliary) for kind in ("server", "client", "collusion")
    )
    assert server.own_triples is None
    assert server.owners is not None
    assert server.auxiliary is not None
    assert client.owners is None
    assert client.auxiliary is None
    assert collusion.owners is not None
    assert collusion.own_triples is not None
    own = run.shards[1].entities
    assert list(client.names) == [name if name in own else "" for name in run.entities]
    assert list(server.names) == list(collusion.names) == list(run.entities)


def reachable(root: object) -> Iterator[object]:
    """Everything that can be reached from an object, short of modules, classes and the globals of functions."""
    seen, left = {id(root)}, [root]
    while left:
        thing = left.pop()
        yield thing
        if isinstance(thing, types.FunctionType):
            further: list[Any] = [*(thing.__closure__ or ()), *(thing.__defaults__ or ())]
        else:
            further = gc.get_referents(thing)
            further += [thing.base] if isinstance(thing, np.ndarray) else []
        for other in further:
            if id(other) not in seen and not isinstance(other, types.ModuleType | type):
                seen.add(id(other))
                left.append(other)


def test_a_clients_view_leads_to_no_array_or_graph_of_others(witnessed: Witnessed) -> None:
    run = witnessed.run
    view = recorded_view(run, "client", VICTIM, CLIENT, auxiliary=run.shards[0].train[:7])
    for number in view.rounds:
        view.look(number)
    things = list(reachable(view))
    arrays = [thing for thing in things if isinstance(thing, np.ndarray)]
    assert not any(isinstance(thing, Run | Graph) for thing in things)
    secrets = [run.tensors["entities"], run.shards[0].train, run.shards[0].train[:7], run.shards[2].train]
    for name in (VICTIM, THIRD):
        secrets += [run.tensors[f"own/{name}"], run.tensors[f"relations/{name}"]]
        for truth in witnessed.rounds.values():
            secrets += [truth.uploads[name]] if name in truth.uploads else []
            secrets += [truth.results[name], truth.relations[name]]
    for secret in secrets:
        assert not any(np.array_equal(array, secret) for array in arrays)
    assert any(np.array_equal(array, run.tensors[f"own/{CLIENT}"]) for array in arrays)  # the walk does find arrays


def spoil(folder: Path, words: tuple[str, ...]) -> int:
    """Overwrite every message and checkpoint whose name holds one of the words."""
    files = [path for path in folder.rglob("*.safetensors") if any(word in path.name for word in words)]
    for path in files:
        path.write_bytes(b"garbage")
    return len(files)


def same_tables(one: View, other: View) -> None:
    assert one.rounds == other.rounds
    for number in one.rounds:
        for piece in PIECES:
            first, second = one.table(number, piece), other.table(number, piece)
            np.testing.assert_array_equal(first, second)


def scores_of(view: View, witnessed: Witnessed) -> dict[str, bytes]:
    """Every fitting attack's scores at the newest round in which victim and adversary both took part."""
    run = witnessed.run
    both = [number for number, truth in witnessed.rounds.items() if {VICTIM, CLIENT} <= set(truth.uploads)]
    view = view.until(both[-1])
    pool = pool_of(run.shards[0], run.shards[1], run.shards, run.entities, run.relations)
    targets = draw_targets("A", pool, np.random.default_rng(1), 20, 0).triples
    attacks = [attack for attack in ATTACKS.values() if view.adversary in attack.needs.adversary]
    assert attacks
    return {attack.name: attack.score(view, targets).tobytes() for attack in attacks}


def test_garbage_in_place_of_others_changes_nothing_for_a_client(witnessed: Witnessed, tmp_path: Path) -> None:
    run = witnessed.run
    assert run.directory is not None
    view = recorded_view(run, "client", VICTIM, CLIENT)
    shutil.copytree(run.directory, tmp_path / "spoiled")
    assert spoil(tmp_path / "spoiled", (VICTIM, THIRD, "server", "model")) > 10
    junk = Graph.from_names("junk", [("x", "y", "z")])
    own = {key: array for key, array in run.tensors.items() if key.endswith(f"/{CLIENT}")}
    spoiled = replace(run, directory=tmp_path / "spoiled", shards=(junk, run.shards[1], junk), tensors=own)
    poor = recorded_view(spoiled, "client", VICTIM, CLIENT)
    same_tables(view, poor)
    assert scores_of(view, witnessed) == scores_of(poor, witnessed)


def test_garbage_in_place_of_private_tables_changes_nothing_for_the_server(
    witnessed: Witnessed, tmp_path: Path
) -> None:
    run = witnessed.run
    assert run.directory is not None
    shutil.copytree(run.directory, tmp_path / "spoiled")
    assert spoil(tmp_path / "spoiled", ("private-",)) == 3 * len(witnessed.rounds)
    auxiliary = run.shards[0].train[:40]
    view, poor = (recorded_view(one, "server", VICTIM, CLIENT, auxiliary) for one in (run, spoiled_run(run, tmp_path)))
    same_tables(view, poor)
    assert scores_of(view, witnessed) == scores_of(poor, witnessed)


def spoiled_run(run: Run, folder: Path) -> Run:
    return replace(run, directory=folder / "spoiled")


def test_a_collusion_reads_no_third_partys_private_tables(witnessed: Witnessed, tmp_path: Path) -> None:
    run = witnessed.run
    assert run.directory is not None
    shutil.copytree(run.directory, tmp_path / "spoiled")
    assert spoil(tmp_path / "spoiled", (f"private-{VICTIM}", f"private-{THIRD}")) == 2 * len(witnessed.rounds)
    same_tables(
        recorded_view(run, "collusion", VICTIM, CLIENT),
        recorded_view(spoiled_run(run, tmp_path), "collusion", VICTIM, CLIENT),
    )
