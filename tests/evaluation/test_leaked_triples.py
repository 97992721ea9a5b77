"""Held-out triples that are in train too: counted, warned of, and left out of every score unless somebody asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fedkge as fk
from fedkge.api.training import open_run, resume
from fedkge.cli.app import app
from fedkge.graph import Graph

OPTIONS = {"dimension": 4, "negatives": 4, "rounds": 2, "evaluate_every": 1, "seed": 5}


def names_of(graph: Graph, split: str) -> list[tuple[str, str, str]]:
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.split(split).tolist()]


@pytest.fixture(scope="module")
def clean() -> Graph:
    return fk.synthetic_graph(entities=50, relations=3, triples=400, seed=2)


@pytest.fixture(scope="module")
def leaky(clean: Graph) -> Graph:
    """The same graph; valid and test hold twenty triples of train besides."""
    train = names_of(clean, "train")
    held_out = {split: [*names_of(clean, split), *train[:20]] for split in ("valid", "test")}
    return Graph.from_names("leaky", train, held_out["valid"], held_out["test"])


def test_a_score_is_that_of_the_graph_without_leaks(leaky: Graph, tmp_path: Path) -> None:
    without = Graph(
        "leaky", leaky.entities, leaky.relations, leaky.train, valid=leaky.valid[:-20], test=leaky.test[:-20]
    )
    run, twin = (fk.train(graph, **OPTIONS, out=tmp_path / str(n)) for n, graph in enumerate((leaky, without)))
    first, second = run.metrics[-1], twin.metrics[-1]
    assert first["clients"]["client-0"].pop("left_out") == 20
    assert "left_out" not in second["clients"]["client-0"]
    assert first == second
    assert run.metrics[:-1] == twin.metrics[:-1]
    everything = run.evaluate(keep_leaked=True)["client-0"]
    assert (len(everything.ranking), everything.leaked, everything.left_out) == (len(leaky.test), 20, 0)


def test_who_asks_gets_them_ranked_and_the_run_remembers(leaky: Graph, tmp_path: Path) -> None:
    kept = fk.train(leaky, **OPTIONS, keep_leaked=True, out=tmp_path / "run")
    assert kept.metrics[-1]["clients"]["client-0"]["triples"] == len(leaky.test)
    again = open_run(tmp_path / "run", data=leaky)
    assert again.configuration.data.keep_leaked
    assert len(again.evaluate()["client-0"].ranking) == len(leaky.test)


def test_a_client_with_nothing_but_leaks_is_not_ranked(clean: Graph) -> None:
    train = names_of(clean, "train")
    run = fk.train(Graph.from_names("all", train, test=train[:5]), **OPTIONS)
    assert not run.metrics
    assert run.evaluate() == {}


def test_the_command_line_warns_counts_and_skips_a_header(leaky: Graph, tmp_path: Path) -> None:
    header = "head\trelation\ttail\n"
    for split in ("train", "valid", "test"):
        lines = "".join("\t".join(row) + "\n" for row in names_of(leaky, split))
        (tmp_path / f"{split}.tsv").write_text(header + lines)
    flags = ["--dimension", "4", "--negatives", "4", "--rounds", "1", "--seed", "5", "--out", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, ["train", "--data", str(tmp_path), *flags])
    assert refused.exit_code == 3
    assert "--skip-header" in refused.stderr
    trained = CliRunner().invoke(app, ["train", "--data", str(tmp_path), "--skip-header", *flags, "--json"])
    assert trained.exit_code == 0, trained.stderr
    assert "warning: test: 20 triples are in train too; they are not ranked" in trained.stderr
    last = json.loads(trained.stdout.splitlines()[-1])
    assert last["clients"]["client-0"]["left_out"] == 20
    resume(tmp_path / "run")
    ranked = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--keep-leaked", "--json"])
    assert json.loads(ranked.stdout)["clients"]["client-0"]["triples"] == len(leaky.test)
    described = CliRunner().invoke(app, ["data", "describe", str(tmp_path), "--skip-header"])
    assert "also in train" in described.stdout
    assert "the first line of each file was skipped" in described.stdout
