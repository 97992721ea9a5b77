"""The document of a reproduction: whole, empty, in between; typed numbers that agree with the cells."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fedkge.reproduction.cells import Cell, Key
from fedkge.reproduction.document import gather
from fedkge.reproduction.settings import PARTS
from fedkge.reproduction.worth import mean
from tests.reproduction.sample import FULL, MRR, QUICK, cell, grid


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
