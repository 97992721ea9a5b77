"""`fedkge attack` as people use it: its table, its JSON, its refusals and its help."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fedkge as fk
from fedkge.attacks import ATTACKS
from tests.end_to_end.test_command_line import SMALL, Outcome, fedkge, write_graph

FEW = ("--targets-count", "20", "--every", "3", "--group-size", "20")
NAMES = {*ATTACKS, "cia", "cia-matched", "cia-published"}
TPR = ("0.1", "0.01", "0.001")


def train(data: Path, out: Path, *options: object) -> Path:
    sizes = ("--clients", 2, "--overlap", 0.8, "--evaluate-every", 0, "--threads", 2)
    outcome = fedkge("train", "--data", data, *SMALL, *sizes, *options, "--out", out)
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graph(tmp_path_factory.mktemp("data") / "my-graph", fk.synthetic_graph(100, 4, 1500, seed=1))


@pytest.fixture(scope="module")
def run(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(graph, tmp_path_factory.mktemp("runs") / "open", "--canaries", 80, "--record", "all")


@pytest.fixture(scope="module")
def told(run: Path) -> Outcome:
    outcome = fedkge("attack", run, *FEW, "--json")
    assert outcome.code == 0, outcome.err
    return outcome


def test_json_has_a_line_per_attack_adversary_design_and_round(told: Outcome) -> None:
    keys = [(line["attack"], line["adversary"], line["design"], line["round"]) for line in told.lines]
    assert len(set(keys)) == len(keys)
    assert {key[0] for key in keys} == NAMES
    for design in "ABCD":
        assert len([key for key in keys if key[2] == design]) == len(NAMES)
    for line in told.lines:
        assert round(line["floor_f1"], 3) == 0.667
        assert line["round"] == 3
        assert 0 <= line["auc"]["low"] <= line["auc"]["value"] <= line["auc"]["high"] <= 1
        assert [str(rate["fpr"]) for rate in line["tpr"]] == list(TPR)
        assert line["tpr"][1]["value"] is None
        assert "needs 299 non-members" in line["tpr"][1]["reason"]
        assert line["best_f1"]["value"] >= line["floor_f1"] - 1e-9
        assert "roc" not in line


def test_canaries_keep_their_number_whatever_the_count(told: Outcome) -> None:
    sizes = {line["design"]: line["members"] for line in told.lines}
    assert (sizes["A"], sizes["C"], sizes["D"]) == (20, 40, 20)


def test_the_table_has_every_attack_beside_the_floor(run: Path, told: Outcome) -> None:
    outcome = fedkge("attack", run, *FEW)
    assert outcome.code == 0
    for design in "ABCD":
        assert re.search(rf"Design {design}: .*targets, F1 of \"everything is a member\": 0\.667", outcome.out)
    for line in told.lines:
        auc = f"{line['auc']['value']:.3f}"
        row = rf"^{line['attack']} +{line['adversary']} +{re.escape(auc)} "
        assert re.search(row, outcome.out, re.MULTILINE), line["attack"]
    for text in ("95 % interval", "TPR@1%", "too few", "F1 cal.", "F1 best", "(round 3)", "The victim is client-0"):
        assert text in outcome.out
    assert f"All rounds and ROC points: {run / 'attacks.json'}" in outcome.err
    assert len(json.loads((run / "attacks.json").read_text(encoding="utf-8"))["outcomes"]) == len(told.lines)


def test_chosen_attacks_and_designs_only(run: Path) -> None:
    outcome = fedkge(
        "attack", run, *FEW, "--attack", "cip", "--attack", "cia", "--attack", "cip", "--targets", "c,a", "--json"
    )
    assert [(line["attack"], line["design"]) for line in outcome.lines] == [
        (attack, design) for attack in ("cip", "cia") for design in "AC"
    ]


def test_si_answers_two_questions_and_changed_rows_are_counted(run: Path) -> None:
    chosen = ("--attack", "si-link", "--attack", "si-centres", "--targets", "A,C")
    outcome = fedkge("attack", run, *FEW, *chosen)
    words = " ".join(outcome.out.split())
    number = r"0\.\d{3}|1\.000"
    assert re.search(rf"design A: link ({number}), triple ({number}); design C: link ({number}), triple", words)
    assert re.search(r"Rows of the victim's upload that differ from what it was sent: \d+ of \d+ \(round 3\)", words)
    content = json.loads((run / "attacks.json").read_text(encoding="utf-8"))
    assert [(entry["design"], entry["round"]) for entry in content["si"]] == [("A", 3), ("C", 3)]
    assert content["rows_changed"][0]["round"] == 3


def test_another_victim_and_another_adversary(run: Path) -> None:
    outcome = fedkge("attack", run, *FEW, "--attack", "cip", "--victim", "client-1", "--adversary", "client-0")
    assert outcome.code == 0, outcome.err
    assert "Design C is left out: the canaries are for victim client-0 and adversary client-1" in outcome.err
    assert "The victim is client-1, the adversary client is client-0" in outcome.out
    outcome = fedkge("attack", run, *FEW, "--attack", "cip", "--targets", "A", "--victim", "client-7")
    assert (outcome.code, "no client 'client-7'" in outcome.err) == (4, True)


def test_a_picture(run: Path, tmp_path: Path) -> None:
    chosen = ("--attack", "cip", "--attack", "trajectory", "--targets", "C", "--every", 1)
    outcome = fedkge("attack", run, *chosen, "--plot", tmp_path / "roc.svg")
    assert outcome.code == 0, outcome.err
    assert "false-positive rate" in (tmp_path / "roc.svg").read_text() or (tmp_path / "roc.svg").stat().st_size > 9_000
    outcome = fedkge("attack", run, *chosen, "--plot", tmp_path / "roc.gif")
    assert (outcome.code, "ends with .svg, .pdf, .png" in outcome.err, outcome.out) == (4, True, "")


def test_training_is_attacked_as_it_goes(graph: Path, tmp_path: Path) -> None:
    names = ("--attack", "cip", "--attack", "cia")
    sizes = ("--clients", 2, "--overlap", 0.8, "--evaluate-every", 0, "--threads", 2, "--rounds", 5)
    options = (*SMALL, *sizes, "--canaries", 80, "--seed", 4, "--out", tmp_path / "live")
    outcome = fedkge("train", "--data", graph, *options, *names)
    assert outcome.code == 0, outcome.err
    assert re.search(r"round 5 attacked, design C, AUC: cip 0\.\d+, cia 0\.\d+", outcome.err)
    assert "Design C" in outcome.out
    made = (tmp_path / "live" / "attacks.json").read_bytes()
    assert fedkge("attack", tmp_path / "live", *names).code == 0
    assert (tmp_path / "live" / "attacks.json").read_bytes() == made
    outcome = fedkge("train", "--data", graph, "--model", "distmult", "--attack", "si-link", "--out", tmp_path / "no")
    assert (outcome.code, "works on TransE and RotatE" in outcome.err) == (4, True)
    assert not (tmp_path / "no").exists()


def test_an_attack_within_the_federation_and_its_price(graph: Path, tmp_path: Path) -> None:
    out = train(graph, tmp_path / "inline", "--inline-attack", "cia", "--canaries", 80, "--rounds", 4, "--seed", 4)
    outcome = fedkge("attack", out, "--attack", "cia-inline", "--targets", "C", "--json")
    assert [line["attack"] for line in outcome.lines] == ["cia-inline"]
    sizes = ("--clients", 2, "--overlap", 0.8, "--evaluate-every", 0, "--threads", 2, "--seed", 4)
    options = (*SMALL, *sizes, "--canaries", 80, "--inline-attack", "cia", "--rounds", 4, "--out", tmp_path / "two")
    outcome = fedkge("train", "--data", graph, *options)
    number = r"0\.\d{4}"
    text = rf"test MRR \(both sides\) is {number} with the attack and {number} without it \(difference [+-]{number}\)"
    assert re.search(text, " ".join(outcome.out.split())), outcome.out


def test_lira_alone_prints_the_design_that_it_works_on(run: Path) -> None:
    outcome = fedkge("attack", run, *FEW, "--attack", "lira", "--shadows", 2)
    assert outcome.code == 0, outcome.err
    assert "Design C" in outcome.out
    assert "Design A" not in outcome.out
    assert re.search(r"^lira +server ", outcome.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--attack", "si-centers"), 4, "unknown attack 'si-centers': did you mean si-centres"),
        (("--attack", "lirra"), 4, "lira"),
        (("--targets", "A,Q"), 4, "--targets: expected some of A,B,C,D,R, got 'A,Q'"),
        (("--targets", ""), 4, "--targets: expected some of A,B,C,D"),
        (("--targets", "A", "--targets-count", 100_000), 3, "ask for a smaller --targets-count"),
        (("--auxiliary", 0), 4, "set --auxiliary to at least 1"),
        (("--attack", "lira", "--targets", "A"), 4, "LiRA works on canaries"),
        (("--every", 0), 2, "--every"),
    ],
)
def test_refusals(run: Path, options: tuple[object, ...], code: int, text: str) -> None:
    outcome = fedkge("attack", run, *FEW, *options)
    assert outcome.code == code
    assert text in outcome.err
    assert outcome.out == ""


def test_runs_that_cannot_be_attacked(graph: Path, tmp_path: Path) -> None:
    assert fedkge("attack", tmp_path / "none").code == 6
    silent = train(graph, tmp_path / "silent", "--rounds", 1)
    outcome = fedkge("attack", silent, *FEW)
    assert outcome.code == 6
    assert "nothing was recorded; train with --record" in outcome.err
    outcome = fedkge("attack", silent, *FEW, "--targets", "C")
    assert outcome.code == 4
    assert "train with --canaries 1000" in outcome.err


def test_without_canaries_design_c_is_left_out_aloud(graph: Path, tmp_path: Path) -> None:
    bare = train(graph, tmp_path / "bare", "--record", "all", "--rounds", 1, "--model", "distmult")
    outcome = fedkge("attack", bare, *FEW, "--json")
    assert outcome.code == 0, outcome.err
    assert "Design C is left out: this run has no canaries" in outcome.err
    assert {line["design"] for line in outcome.lines} == set("ABD")
    assert not any(line["attack"].startswith("si-") for line in outcome.lines)
    outcome = fedkge("attack", bare, *FEW, "--targets", "A", "--attack", "si-centres")
    assert outcome.code == 4
    assert "works on TransE and RotatE, got a DistMult run" in outcome.err


def test_help_teaches() -> None:
    outcome = fedkge("attack", "--help")
    assert outcome.code == 0
    words = " ".join(re.sub(r"[│╭╮╰╯─]", " ", outcome.out).split())
    for text in (
        "fedkge train --data demo --clients 3 --canaries 600 --record every:5 --out runs/open",
        "fedkge attack runs/open",
        "0.667",
        "Each attack sees only what its adversary saw",
        "--lira-base",
        "--waiting-rounds",
    ):
        assert text in words
    assert "attack" in fedkge("--help").out


def test_real_triples_and_their_shadows(graph: Path, run: Path, tmp_path: Path) -> None:
    options = ("--canaries", 200, "--canary-source", "real", "--record", "all", "--epsilon", 8)
    real = train(graph, tmp_path / "real", *options)
    outcome = fedkge("attack", real, "--attack", "shadow", "--attack", "si-centres", "--json")
    assert outcome.code == 0, outcome.err
    found = {(line["attack"], line["adversary"]) for line in outcome.lines if line["design"] == "R"}
    variants = {("shadow-uploads", "server"), ("shadow-model", "recipient"), ("shadow-copy", "auditor")}
    assert found == {*variants, ("si-centres", "server")}
    assert {line["design"] for line in outcome.lines} == set("ABDR")
    assert len(list((real / "shadows").iterdir())) == 2
    shown = fedkge("attack", real, "--attack", "shadow", "--targets", "C,R")
    assert shown.code == 0, shown.err
    assert "Design C is left out: this run's canaries are design R." in shown.err
    assert "Design R: real triples that a coin left in against real triples" in " ".join(shown.out.split())
    for options, words in (
        ((run, "--attack", "shadow", "--targets", "B"), "--canary-source real"),
        ((run, "--attack", "shadow", "--targets", "R"), "design R needs real triples"),
        (
            (real, "--attack", "shadow", "--targets", "R", "--shadows", 3),
            "expected an even number of shadow federations",
        ),
        ((real, "--targets", "Q"), "expected some of A,B,C,D,R"),
    ):
        refused = fedkge("attack", *options)
        assert refused.code == 4
        assert words in " ".join(refused.err.split())
    early = fedkge("train", "--data", graph, "--clients", 2, "--attack", "shadow", "--out", tmp_path / "never")
    assert early.code == 4
    assert "--canary-source real" in early.err
    assert not (tmp_path / "never").exists()
