"""Which federations serve which cells, by which settings, at which rounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedkge.api.training import check
from fedkge.base.errors import ConfigurationError
from paper.cells import Key
from paper.cost import CALIBRATION, estimated_seconds
from paper.crossings import counting, crossings, defences_of, epsilon_after, spent_after
from paper.measure import shards_for
from paper.plan import cells_of, wanted, works
from paper.settings import PARTS, Settings, default_folder
from tests.paper.tiny import write_tiny
from tests.real_data import beside_data

PAPER = beside_data("paper.tex")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(write_tiny(tmp_path / "settings"))


@pytest.mark.parametrize("quick", [False, True])
def test_every_cell_of_our_own_settings_is_a_federation_that_fedkge_would_train(quick: bool) -> None:
    own = Settings(default_folder(), quick)
    for work in works(own, wanted(own, ["all"])):
        check(work.configuration)
        assert estimated_seconds(work) > 0
        assert len({(key.data, key.model, key.column, key.defence, key.seed) for key in work.keys}) == 1


def test_a_copy_is_estimated_to_train_as_long_as_without_a_defence() -> None:
    own = Settings(default_folder())
    name = "fb15k-237.transe.sound.{}.s12"
    copied, free = works(own, wanted(own, [name.format("recommended.e16"), name.format("none")]))
    assert copied.configuration.privacy.copy_share
    triples = [work.configuration.training.rounds * work.configuration.training.local_epochs for work in (copied, free)]
    ratio = (estimated_seconds(copied) - CALIBRATION) / estimated_seconds(free)
    assert ratio == pytest.approx(
        triples[0] / triples[1] * copied.configuration.model.dimension / free.configuration.model.dimension, rel=0.01
    )


def test_our_own_settings_hold_every_cell_of_the_paper() -> None:
    own = Settings(default_folder())
    attacked = set(cells_of(own, "table-attacks"))
    assert len(attacked) == 8
    useful = {(key.data, key.model, key.defence, key.epsilon) for key in cells_of(own, "table-utility")}
    for data in ("fb15k-237", "nell-995"):
        for model in ("transe", "rotate", "distmult", "complex"):
            for defence in ("dpsgd", "dp-flames", "dp-flames-adaptive", "noisy-steps", "recommended"):
                assert {(data, model, defence, 16.0), (data, model, defence, 32.0)} <= useful
    budgets = {key.epsilon for key in cells_of(own, "figure-defence")}
    assert budgets == {0, 2, 4, 8, 16, 24, 32, 48, 64}


def test_one_run_serves_every_budget_that_it_crosses_and_a_calibrated_one_its_own(settings: Settings) -> None:
    everything = works(settings, wanted(settings, ["figure-defence"]))
    crossing = [work for work in everything if work.keys[0].defence == "dpsgd"]
    calibrated = [work for work in everything if work.keys[0].defence == "recommended"]
    assert [[key.epsilon for key in work.keys] for work in crossing] == [[2, 8]]
    assert [[key.epsilon for key in work.keys] for work in calibrated] == [[2], [8]]
    assert crossing[0].budgets == (2, 4, 8), "also those of the other parts"


def test_the_same_cell_in_two_parts_is_one_federation(settings: Settings) -> None:
    apart = {work.digest for part in PARTS for work in works(settings, wanted(settings, [part]))}
    together = [work.digest for work in works(settings, wanted(settings, ["all"]))]
    assert sorted(apart) == sorted(together)


def test_what_a_table_can_do_without_comes_last(settings: Settings) -> None:
    order = [(key.defence, key.seed) for key in wanted(settings, ["table-utility"])]
    assert order.index(("none", 4)) > order.index(("recommended", 3))
    assert order[-1][0] == "dp-flames-adaptive"


def test_settings_go_from_general_to_particular(settings: Settings) -> None:
    configuration = settings.configuration(Key("demo", "transe", "published", "none", 0, 3))
    assert (configuration.training.rounds, configuration.training.batch_size, configuration.model.dimension) == (
        4,
        64,
        8,
    )
    quick = Settings(settings.folder, quick=True).configuration(Key("demo", "transe", "published", "none", 0, 3))
    assert (quick.training.rounds, quick.training.local_epochs) == (2, 2)
    calibrated = settings.configuration(Key("demo", "transe", "sound", "recommended", 8, 3))
    assert calibrated.privacy.epsilon == 8
    assert not hasattr(calibrated.privacy, "noise")


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("table-attack", "no part and no cell"),
        ("demo.transe.sound.recomended.e8.s3", "did you mean recommended"),
        ("demo.transe.sound.recommended.s3", "expected a budget"),
        ("demo.transe.sound.none.e8.s3", "expected a budget"),
        ("demo.transe.other.none.s3", "no part and no cell"),
        ("demo.transh.sound.none.s3", "did you mean transe"),
    ],
)
def test_what_does_not_exist_is_refused(settings: Settings, asked: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        wanted(settings, [asked])


def test_a_folder_without_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such settings"):
        wanted(Settings(tmp_path), ["all"])


@pytest.mark.parametrize(
    "name", ["demo.transe.sound.dp-flames-adaptive.e2.s3", "demo.transe.published.dp-flames.e2.s3"]
)
def test_a_crossing_is_the_last_round_that_the_budget_covers(settings: Settings, name: str) -> None:
    (work,) = works(settings, wanted(settings, [name]))
    defences = defences_of(shards_for(work).graphs, work.configuration)
    accountant = counting(work.configuration)
    budgets = [1e-6, *(epsilon_after(defences, number, accountant) * 1.01 for number in (1, 2)), 1e9]
    found = crossings(defences, budgets)
    assert list(found.values()) == [0, 1, 2, work.configuration.training.rounds]
    for budget, number in found.items():
        assert epsilon_after(defences, number, accountant) <= budget


def test_the_papers_formulas_stand_beside_no_guarantee(settings: Settings) -> None:
    (work,) = works(settings, wanted(settings, ["demo.transe.published.dpsgd.e2.s3"]))
    spent = spent_after(defences_of(shards_for(work).graphs, work.configuration), 2)
    assert spent["sound"] is None
    assert spent["published"] is None, "at a rate this high the paper's lemma allows no order at all"
    assert (spent["published, all orders"] or 0) > 0
    defences = defences_of(shards_for(work).graphs, work.configuration.updated(public_triples=90_000))
    assert (spent_after(defences, 2)["published"] or 0) > (spent_after(defences, 2)["published, all orders"] or 9)


@pytest.mark.skipif(PAPER is None, reason="needs paper.tex beside the folder that FEDKGE_DATA names")
def test_the_printed_numbers_are_those_of_the_paper() -> None:
    assert PAPER is not None
    own, text = Settings(default_folder()), PAPER.read_text(encoding="utf-8")
    utility, attacks = own.part("table-utility")["paper"], own.part("table-attacks")["paper"]
    names = {"FKGE": "none", "Baseline": "dpsgd", "DP-Flame": "dp-flames", "DP-Flame-Adp": "dp-flames-adaptive"}
    blocks = re.split(r"\\multirow\{7\}", text)[1:]
    assert len(blocks) == 2
    for data, block in zip(("fb15k-237", "nell-995"), blocks, strict=True):
        rows = re.findall(r"&(FKGE|Baseline|DP-Flame-Adp|DP-Flame)(?: \(\$\\epsilon = (\d+)\$\))? &([^\\]+)\\\\", block)
        assert len(rows) == 7
        for name, budget, numbers in rows:
            printed = [float(number) for number in numbers.split("&")]
            kept = utility[data][names[name] + (f"-{budget}" if budget else "")]
            assert [value for model in ("transe", "rotate", "distmult", "complex") for value in kept[model]] == printed
    for data, label in (("fb15k-237", "fb15k-237"), ("nell-995", "nell-955")):
        (line,) = re.findall(rf"^\s+{label} &(.+)\\\\", text, flags=re.MULTILINE)
        printed = [float(number) for number in line.split("&")]
        kept = attacks[data]
        assert [*kept["cip"].values(), *kept["cia"].values(), *kept["si"].values()] == printed
