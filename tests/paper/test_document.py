"""The document of a reproduction: whole, empty, in between; typed numbers that agree with the cells."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fedkge.base.errors import ConfigurationError
from paper.cells import Cell, Key
from paper.document import gather
from paper.drawing import draw_reproduction
from paper.markdown import markdown_reproduction
from paper.page import render_reproduction
from paper.plan import measured, wanted, works
from paper.settings import PARTS, Settings
from paper.worth import mean
from tests.paper.sample import FULL, MRR, QUICK, cell, grid
from tests.paper.tiny import FILES, write_tiny


def test_a_whole_grid_leaves_nothing_open() -> None:
    document = gather(FULL, grid())
    assert document.head.there == document.head.wanted == len(grid())
    assert document.counts["not run yet"] == 0
    assert sum(document.counts.values()) == len(document.claims)
    assert [text.part for text in document.texts] == list(PARTS)
    assert all(text.there == text.wanted and text.summary and text.choices for text in document.texts)


def test_an_empty_folder_is_a_document_too() -> None:
    document = gather(QUICK, {})
    assert document.head.there == 0
    assert document.head.hours == 0
    assert all(text.there == 0 and text.summary == () for text in document.texts)
    assert all(row.best is None and not row.measured for row in document.attacks.rows)
    assert json.loads(document.to_json())["head"]["quick"] is True


def test_a_run_that_serves_several_cells_is_counted_once() -> None:
    cells = {key: one for key, one in grid().items() if (key.data, key.model) == ("fb15k-237", "transe")}
    runs = {(one.digest, key.seed) for key, one in cells.items()}
    document = gather(FULL, cells)
    assert document.head.federations == len(runs) < len(cells)
    assert document.head.hours == pytest.approx(len(runs) * 120 / 3600, abs=0.01)


def test_cells_that_nobody_asked_for_are_left_out() -> None:
    stranger = Key("fb15k-237", "transe", "sound", "recommended", 5.0, 99)
    assert gather(FULL, {stranger: cell(stranger)}).head.there == 0


def test_the_same_cells_in_another_order_give_the_same_json() -> None:
    backwards = dict(reversed(list(grid().items())))
    assert gather(FULL, backwards).to_json() == gather(FULL, grid()).to_json()


def test_rows_of_the_attack_table() -> None:
    row = gather(FULL, grid()).attacks.row("fb15k-237", "transe", "si")
    assert row
    assert row.paper == 0.878
    assert row.printed
    assert row.printed.attack == "si-published"
    assert row.best
    assert (row.best.attack, row.best.round) == ("si-centres", 20)
    assert row.last
    assert row.last.calibrated_f1 == pytest.approx(row.last.best_f1 - 0.02)
    assert row.strict
    assert row.strict.design == "B"
    bilinear = gather(FULL, grid()).attacks.row("fb15k-237", "distmult", "si")
    assert bilinear
    assert bilinear.measured
    assert bilinear.best is None


def test_rows_of_the_utility_table() -> None:
    table = gather(FULL, grid()).utility
    row = table.row("fb15k-237", "transe", "dp-flames", 16.0)
    assert row
    assert row.paper
    assert row.published
    assert row.published.ranked
    assert row.published.ranked.mrr == pytest.approx(MRR["dp-flames"] + 0.001)
    assert (row.published.exhausted, row.published.tests_made) == (False, 1000)
    ours = table.row("fb15k-237", "transe", "recommended", 16.0)
    assert ours
    assert ours.absent == ("published",)
    assert ours.sound
    assert ours.sound.sides
    assert ours.sound.sides.both.seeds == len(FULL.seeds)
    assert ours.sound.sides.both.low is not None
    assert {control.name for control in table.controls} == {"popularity", "popularity, epsilon 1"}


def test_the_paper_is_held_against_what_is_private() -> None:
    defended = [one for one in gather(FULL, grid()).utility.reached if one.defended]
    assert {one.ours_setting for one in defended} == {"recommended, sound epsilon 16"}
    assert {one.paper_setting for one in defended} == {"dp-flames-adaptive, epsilon 16"}
    void = {key: replace(one, spent={}) for key, one in grid().items()}
    assert all(one.ours is None for one in gather(FULL, void).utility.reached if one.defended)


def test_a_budget_that_covers_no_round_is_told_as_such() -> None:
    def without(one: Cell) -> Cell:
        return replace(one, round=0, utility={}, controls={}, attacks=())

    cells = {key: without(one) if key.defence == "dpsgd" else one for key, one in grid().items()}
    row = gather(FULL, cells).utility.row("fb15k-237", "transe", "dpsgd", 16.0)
    assert row
    assert row.published
    assert row.published.ranked is None
    assert row.sound
    assert row.sound.sides is None


def test_the_means_before_and_after_are_over_the_same_attacks() -> None:
    figure = gather(FULL, grid()).defence
    means = figure.means("fb15k-237", "transe", "published", "dp-flames", 16.0)
    assert means
    assert means[1] == pytest.approx(0.667)
    cells = {
        key: replace(one, attacks=tuple(entry for entry in one.attacks if not entry["attack"].startswith("cia")))
        if key.defence == "dp-flames"
        else one
        for key, one in grid().items()
    }
    fewer = gather(FULL, cells).defence.means("fb15k-237", "transe", "published", "dp-flames", 16.0)
    assert fewer
    assert fewer[0] > means[0]  # the weakest attack is in neither mean


def test_an_interval_needs_two_seeds() -> None:
    assert mean([0.3]).low is None
    two = mean([0.3, 0.4])
    assert two.low is not None
    assert two.low < 0.3


LEFT_OUT = {
    "a key": ("federations", r"test-failure = .*\n"),
    "epochs": ("federations", r"local-epochs = .*\n"),
    "how often CIA is played": ("table-attacks", r"cia-every = .*\n"),
    "how attacks are played": ("table-attacks", r"(last-round-only|designs|every|cia-\S+) = .*\n"),
    "forms": ("table-attacks", r"families = .*\n"),
    "ours": ("table-attacks", r"ours = .*\n"),
    "numbers of Table 1": ("table-attacks", r"\[paper[^\[]*"),
    "numbers of Table 2": ("table-utility", r"(?s)\[paper\..*"),
    "defended numbers of Table 2": ("table-utility", r"(?s)\[paper\.demo\.dpsgd-4\].*"),
    "numbers of the figure": ("figure-defence", r"(?s)\[paper\].*"),
    "attacks after defence": ("figure-defence", r"(?s)\[attacks\].*(?=\[paper\])"),
    "a defence of the figure": ("figure-defence", r'"dp-flames", |, "dp-flames"'),
    "budgets": ("figure-tradeoff", r"budgets = .*\n"),
    "the order": ("table-utility", r"\[first\]\n.*\n"),
    "all of a column": ("table-utility", r"sound = .*\n"),
}


def without(folder: Path, name: str, pattern: str) -> Settings:
    write_tiny(folder)
    text, count = re.subn(pattern, "", FILES[name])
    assert count
    (folder / f"{name}.toml").write_text(text)
    return Settings(folder)


@pytest.mark.parametrize("what", LEFT_OUT)
def test_settings_may_leave_out_what_is_optional(what: str, tmp_path: Path) -> None:
    settings = without(tmp_path, *LEFT_OUT[what])
    assert measured(settings, tmp_path) == {}
    everything = {key: cell(key, settings) for work in works(settings, wanted(settings, ["all"])) for key in work.keys}
    figures = draw_reproduction(gather(settings, {}))
    for cells in ({}, everything):
        document = gather(settings, cells)
        assert all(text.choices for text in document.texts)
        assert "</html>" in render_reproduction(document, figures=figures)
        assert markdown_reproduction(document, figures)


def test_settings_without_a_defence_do_not_speak_of_it(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    for name in ("federations", "table-utility", "figure-defence"):
        text = re.sub(r'(?s)\[published\.dp-flames\].*?(?=\[)|, "dp-flames"(?!-)|"dp-flames", ', "", FILES[name])
        (tmp_path / f"{name}.toml").write_text(text)
    document = gather(Settings(tmp_path), {})
    assert "failure probability" not in " ".join(document.text("table-utility").choices)
    assert "DP-FLames" not in " ".join(document.text("figure-defence").choices)


@pytest.mark.parametrize(("name", "pattern"), [("figure-rounds", r"models = .*\n"), ("federations", r"seeds = .*\n")])
def test_settings_that_must_be_there_are_asked_for(name: str, pattern: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=name):
        gather(without(tmp_path, name, pattern), {})


def test_choices_name_what_differs_before_and_after(tmp_path: Path) -> None:
    alike = gather(Settings(write_tiny(tmp_path)), {}).text("figure-defence").choices[-1]
    assert "reverses" not in alike
    assert "waits" not in alike
    text = FILES["figure-defence"].replace("group-size = 40", "group-size = 80").replace("rounds = 1", "rounds = 2")
    (tmp_path / "figure-defence.toml").write_text(text)
    unlike = gather(Settings(tmp_path), {}).text("figure-defence").choices[-1]
    assert "how long CIA waits (1 round without a defence, 2 with one)" in unlike
    assert "how many targets it reverses at once (40, 80)" in unlike


def test_choices_say_how_easy_the_split_is() -> None:
    document = gather(FULL, grid())
    split = next(one for one in document.text("table-utility").choices if one.startswith("The split"))
    assert ".320 on FB15k-237 (undefended models of the paper: .301 to .368)" in split
    assert not any(one.startswith("The split") for one in gather(FULL, {}).text("table-utility").choices)
