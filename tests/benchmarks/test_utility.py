"""The harness of the frontier: every row is a valid federation, nothing is measured twice, the page has it all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from benchmarks.utility import frontier
from benchmarks.utility.page import write_page
from benchmarks.utility.rows import ROWS, Cell, is_private
from benchmarks.utility.summary import Mean, gain, kept

from benchmarks import utility
from fedkge.defences import check_defence
from fedkge.graph.synthetic import synthetic_graph
from fedkge.models import MODELS
from paper.grid import Lines


def record(row: str, epsilon: float, seed: int, both: float, **more: object) -> dict[str, object]:
    sides = {"tail": both + 0.1, "head": both - 0.1, "both": both}
    counted = {side: value / 2 for side, value in sides.items()}
    controls = {"popularity": counted, **({"popularity, same epsilon": counted} if epsilon else {})}
    place = {"data": "here", "model": "transe", "row": row, "epsilon": epsilon, "seed": seed, "options": {}}
    return {"digest": "", **place, "test": sides, "controls": controls, **more}


def add(store: Lines, cell: dict[str, object]) -> str:
    name = f"{cell['row']}{cell['epsilon']}{cell['seed']}{cell.get('canaries', '')}"
    store.add(name, cell)
    return name


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("model", MODELS)
def test_every_row_is_a_valid_federation(row: str, model: str) -> None:
    options = Cell("demo", model, row, 8.0 if is_private(row) else 0.0, seed=11).configuration()
    check_defence(options)
    assert (options.privacy.defence != "none") == is_private(row)


@pytest.mark.parametrize("model", MODELS)
def test_without_a_defence_it_trains_like_the_recommended_one(model: str) -> None:
    private, open_ = (
        Cell("demo", model, row, epsilon, seed=11).configuration().as_options()
        for row, epsilon in (("recommended", 8.0), ("none", 0.0))
    )
    different = {key for key, value in private.items() if open_.get(key) != value}
    own = set(private) - set(open_)
    assert {"count_share", "copy_share", "sparse_share"} <= own
    assert different - own == {"defence", "epsilon", "noise_seed"}


def test_means_have_intervals_and_pairs_are_compared_seed_by_seed() -> None:
    mine = [record("recommended", 8.0, seed, both) for seed, both in ((1, 0.2), (2, 0.4))]
    whole = [record("none", 0.0, seed, both) for seed, both in ((2, 0.8), (3, 0.1), (1, 0.4))]
    assert gain(mine).value == pytest.approx(0.15)
    assert kept(mine, whole) == Mean(0.5, 0.0)
    assert kept(mine, []) is None
    assert Mean.of([0.1, 0.3]).half == pytest.approx(12.706 * 0.1, rel=1e-3)
    assert math.isinf(Mean.of([0.1]).half)


def test_all_combinations_of_values_are_tried() -> None:
    assert frontier.choices(["a=1,x", "b=0.5"]) == [{"a": 1, "b": 0.5}, {"a": "x", "b": 0.5}]
    assert frontier.choices([]) == [{}]


def test_the_page_has_every_number_and_a_dash_for_what_is_missing(tmp_path: Path) -> None:
    store = Lines(tmp_path)
    auc = {"value": 0.52, "low": 0.48, "high": 0.56}
    outcomes = [{"attack": "cip", "adversary": "client", "design": "C", "auc": auc}]
    for seed in (1, 2):
        add(store, record("none", 0.0, seed, 0.4))
        add(store, record("recommended", 8.0, seed, 0.3))
    add(store, record("dpsgd", 4.0, 1, 0.05))
    add(store, record("recommended", 8.0, 1, 0.31, canaries="shared", outcomes=outcomes))
    write_page(store, "frontier")
    text = (tmp_path / "README.md").read_text()
    assert "| transe, `recommended` | – | – | .300 ± .000 (.400, .200) |" in text  # noqa: RUF001
    assert "| transe, `recommended` as a part of `none` | | – | 75 % |" in text  # noqa: RUF001
    assert "cip 0.520 (0.480 to 0.560)" in text
    assert (tmp_path / "frontier.svg").read_text().count("here, transe") >= 1


def test_the_page_has_shadow_attacks_by_budget(tmp_path: Path) -> None:
    store = Lines(tmp_path)
    for row, epsilon, seed, area in (
        ("none", 0.0, 1, 0.95),
        ("recommended", 8.0, 1, 0.8),
        ("recommended", 8.0, 2, 0.9),
    ):
        auc, tpr = {"value": area, "low": area - 0.02, "high": area + 0.02}, {"0.01": area / 2}
        names = ("shadow-uploads", "shadow-model", *(("shadow-copy",) if epsilon else ()), "cip-published")
        outcomes = [{"attack": name, "adversary": "server", "design": "R", "auc": auc, "tpr": tpr} for name in names]
        outcomes[-1] = {**outcomes[-1], "auc": {**auc, "value": 0.02}}  # as good as .98 for who turns it round
        more = {"canaries": "real", "outcomes": outcomes, "audit": {"bound": 4.0 + seed}}
        add(store, record(row, epsilon, seed, 0.3, **more))
    write_page(store, "frontier")
    text = (tmp_path / "README.md").read_text()
    assert "## Attacks" not in text
    areas = ".950 (.930 to .970); .475"
    none = f"| here, transe, `none` | – | 1 | {areas} | {areas} | – | cip-published .020 | 5.0 | .300 |"  # noqa: RUF001
    assert none in text
    assert "| here, transe, `recommended` | 8 | 2 | .850 (.780 to .920); .425 |" in text


def test_real_targets_are_fewer_on_small_graphs() -> None:
    for data, count in (("codex-s", 3000), ("demo", 1000)):
        options = Cell(data, "transe", "none", 0.0, 11, "real").configuration()
        assert (options.experiment.canaries, options.experiment.canary_source, options.experiment.canary_coins) == (
            count,
            "real",
            "seeded",
        )


def test_a_cell_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    graph = synthetic_graph(entities=60, relations=4, triples=600, seed=1)
    folder = tmp_path / "graph"
    folder.mkdir()
    for part in ("train", "valid", "test"):
        names = [
            (graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in getattr(graph, part).tolist()
        ]
        (folder / f"{part}.txt").write_text("".join("\t".join(name) + "\n" for name in names))
    monkeypatch.setattr(frontier, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(frontier, "DATA", (str(folder),))
    words = ["frontier", "--model", "distmult", "--epsilon", "8", "--seed", "11", "--workers", "1"]
    assert utility.main(words) == 0
    first = (tmp_path / "results" / "graph.jsonl").read_text()
    rows = [json.loads(line) for line in first.splitlines()]
    assert [row["row"] for row in rows] == ["none", "isolated", "recommended"]
    assert rows[2]["spent"] == pytest.approx(8.0, abs=0.05)
    assert set(rows[2]["controls"]) == {"popularity", "popularity, same epsilon", "counts alone"}
    assert "less popularity" in capsys.readouterr().out
    assert utility.main(words) == 0
    assert (tmp_path / "results" / "graph.jsonl").read_text() == first


def test_a_cell_of_other_settings_replaces_the_old_one_and_a_torn_line_does_no_harm(tmp_path: Path) -> None:
    store = Lines(tmp_path)
    add(store, {**record("none", 0.0, 1, 0.4), "digest": "old"})
    assert store.has("none0.01", "old")
    assert not store.has("none0.01", "new")
    with (tmp_path / "here.jsonl").open("a") as lines:
        lines.write('{"cell": "torn')
    add(store, {**record("none", 0.0, 1, 0.5), "digest": "new"})
    assert [one["test"]["both"] for one in store.cells()] == [0.5]
