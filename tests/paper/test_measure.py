"""One federation becomes its cells, whatever interrupts it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedkge.base.errors import RunError
from paper.cells import Cell, Key, path_of, read_cell, read_cells
from paper.measure import Places, measure
from paper.plan import Work, wanted, works
from paper.settings import Settings
from tests.paper.tiny import write_tiny

NOISE = {"noise_seed": 5}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(write_tiny(tmp_path / "settings"))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "runs", tmp_path / "results", "fedkge reproduce")


def work_of(settings: Settings, name: str) -> Work:
    (work,) = works(settings, wanted(settings, [name]))
    return work


def quiet(_: str, __: float) -> None:
    pass


def test_an_undefended_federation_is_ranked_and_attacked_round_by_round(settings: Settings, places: Places) -> None:
    work = work_of(settings, "demo.transe.published.none.s3")
    told: list[tuple[str, float]] = []
    measure(work, places, lambda what, share: told.append((what, share)))
    cell = read_cell(path_of(places.results, work.keys[0]))
    assert (cell.round, cell.exhausted, cell.digest, cell.spent) == (4, True, work.digest, {})
    assert set(cell.utility) == {"all", "seen"}
    assert 0 < cell.utility["seen"]["tail.mrr"] <= 1
    assert set(cell.controls) == {"popularity", "popularity, epsilon 1"}
    rounds = {attack: {one["round"] for one in cell.attacks if one["attack"] == attack} for attack in ("cip", "cia")}
    assert rounds == {"cip": {2, 4}, "cia": {4}}
    assert {one["round"] for one in cell.attacks if one["attack"] == "si-published"} == {4}
    assert all("roc" in one for one in cell.attacks if one["round"] == 4)
    assert cell.seconds["training"] > 0
    assert ("round 4 of 4", 1.0) in told
    assert not work.pending(places.results)
    assert not (places.runs / work.name).exists()


def test_a_crossing_run_is_looked_at_where_its_budgets_end(settings: Settings, places: Places) -> None:
    keys = [f"demo.transe.sound.dp-flames-adaptive.e{budget}.s3" for budget in (2, 8)]
    (work,) = works(settings, wanted(settings, keys))
    measure(work, places, quiet)
    small, large = (read_cell(path_of(places.results, Key.parse(key))) for key in keys)
    assert 0 < small.round < large.round
    assert (small.spent["sound"] or 9) <= 2 < (large.spent["sound"] or 0) <= 8
    assert small.utility != large.utility
    for cell in (small, large):
        assert {one["round"] for one in cell.attacks} == {cell.round}
        assert {"cip", "cia"} <= {one["attack"] for one in cell.attacks}


def test_a_budget_that_is_never_used_up_shows_the_last_round_and_says_so(settings: Settings, places: Places) -> None:
    keys = [f"demo.transe.published.dp-flames.e{budget}.s3" for budget in (2, 8)]
    (work,) = works(settings, wanted(settings, keys))
    raised = work.configuration.updated(noise=50.0)
    measure(replace(work, configuration=raised, budgets=(2.0, 8.0, 1e-9)), places, quiet)
    cells = [read_cell(path_of(places.results, key)) for key in work.keys]
    assert [(cell.round, cell.exhausted) for cell in cells] == [(3, False), (3, False)]
    assert cells[0].tests["made"] > 0
    assert cells[0].spent["sound"] is None


def test_a_budget_below_the_first_round_has_a_cell_that_says_so(settings: Settings, places: Places) -> None:
    work = work_of(settings, "demo.transe.published.dpsgd.e2.s3")
    lowered = work.configuration.updated(noise=0.2)
    measure(replace(work, configuration=lowered, budgets=(2.0,)), places, quiet)
    cell = read_cell(path_of(places.results, work.keys[0]))
    assert (cell.round, cell.utility, cell.attacks) == (0, {}, ())


def test_settings_that_changed_are_measured_again(settings: Settings, places: Places) -> None:
    work = work_of(settings, "demo.distmult.sound.none.s3")
    measure(work, places, quiet)
    assert not work.pending(places.results)
    path = settings.folder / "federations.toml"
    path.write_text(
        path.read_text().replace("rounds = 2\nlocal-epochs = 1\nnegatives = 8\n[sound.rec", "rounds = 3\n[sound.rec")
    )
    assert work_of(Settings(settings.folder), "demo.distmult.sound.none.s3").pending(places.results) == work.keys


class PlugError(Exception):
    """Somebody pulled the plug."""


def test_an_interrupted_measurement_goes_on_and_ends_the_same(
    settings: Settings, places: Places, tmp_path: Path
) -> None:
    keys = [f"demo.transe.sound.dp-flames-adaptive.e{budget}.s3" for budget in (2, 8)]
    (work,) = works(settings, wanted(settings, keys))
    seeded = replace(work, configuration=work.configuration.updated(**NOISE))  # so that both are the same
    whole = Places(tmp_path / "whole", tmp_path / "whole-results", "fedkge reproduce")
    measure(seeded, whole, quiet)

    def interrupt(what: str, _: float) -> None:
        if what.startswith("round 4"):
            raise PlugError

    with pytest.raises(PlugError):
        measure(seeded, places, interrupt)
    assert not read_cells(places.results)
    measure(seeded, places, quiet)
    assert {key: facts(cell) for key, cell in read_cells(places.results).items()} == {
        key: facts(cell) for key, cell in read_cells(whole.results).items()
    }


def test_what_was_attacked_is_not_attacked_again(settings: Settings, places: Places) -> None:
    work = work_of(settings, "demo.transe.published.none.s3")

    def interrupt(what: str, _: float) -> None:
        if what.startswith("cia"):
            raise PlugError

    with pytest.raises(PlugError):
        measure(work, places, interrupt)
    told: list[str] = []
    measure(work, places, lambda what, _: told.append(what))
    assert any(what.startswith("cia") for what in told)
    assert not any(what.startswith("cip") for what in told)
    cell = read_cell(path_of(places.results, work.keys[0]))
    assert {"cip", "cia", "si-published"} <= {one["attack"] for one in cell.attacks}


def facts(cell: Cell) -> tuple[object, ...]:
    return cell.round, cell.utility, cell.attacks, cell.spent, cell.digest


def test_a_broken_cell_is_named(tmp_path: Path, places: Places) -> None:
    path = path_of(places.results, Key("demo", "transe", "sound", "none", 0, 3))
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"format": 99}))
    with pytest.raises(RunError, match="measured again"):
        read_cell(path)
