"""A stranger's diff: one file and one line of registration, and everything knows the name.

`docs/how-to/extend-fedkge.md` shows the files of this folder. `python -m tests.extensions.test_extensions` copies them
into the page.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.attacks import ATTACKS, check
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.defences import DEFENCES
from fedkge.federation.aggregation import AGGREGATIONS
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms import SELECTIONS
from fedkge.models import MODELS
from tests.attacks import area_under_curve, federation
from tests.cases.aggregations import AggregationCase
from tests.cases.models import ModelCase
from tests.end_to_end.test_command_line import fedkge, write_graph
from tests.extensions.advantage import Advantage
from tests.extensions.counts_alone import CountsAlone
from tests.extensions.lottery import Lottery
from tests.extensions.median import Median
from tests.extensions.simple import SimplE

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parents[1] / "docs" / "how-to" / "extend-fedkge.md"
BLOCK = re.compile(r"<!-- file: (\w+\.py) -->\n```python\n.*?```", re.DOTALL)
STEPS = ("--noise", "1", "--private-negatives", "public", "--batch-size", "32", "--names", "listed")

REGISTRATIONS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "model": (MODELS, "simple", SimplE),
    "attack": (ATTACKS, "advantage", Advantage()),
    "selection": (SELECTIONS, "lottery", Lottery),
    "aggregation": (AGGREGATIONS, "median", Median),
    "defence": (DEFENCES, "counts-alone", CountsAlone()),
}
OPTIONS: dict[str, tuple[str, ...]] = {
    "model": ("--model", "simple", "--epsilon", "8", "--names", "listed"),
    "attack": (),
    "selection": ("--defence", "noisy-steps", "--selection", "lottery", *STEPS),
    "aggregation": ("--aggregation", "median", "--epsilon", "8", "--names", "listed"),
    "defence": ("--defence", "counts-alone", "--epsilon", "4", "--names", "listed"),
}


@pytest.fixture(params=REGISTRATIONS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of thing that was added, after its one line of registration."""
    registry, name, entry = REGISTRATIONS[request.param]
    monkeypatch.setitem(registry, name, entry)
    return str(request.param)


@pytest.fixture
def trained(kind: str, tmp_path: Path) -> Path:
    """A short run from the command line that uses the new thing."""
    graph = write_graph(tmp_path / "graph", synthetic_graph(entities=60, relations=3, triples=600, seed=3))
    common = ("--clients", "3", "--rounds", "3", "--dimension", "8", "--negatives", "8", "--seed", "5")
    where = ("--data", graph, "--out", tmp_path / "run", "--record", "all", "--canaries", "20")
    assert fedkge("train", *where, *common, *OPTIONS[kind]).code == 0
    return tmp_path / "run"


def test_every_command_knows_it(kind: str, trained: Path) -> None:
    name = REGISTRATIONS[kind][1]
    assert math.isfinite(fedkge("evaluate", trained, "--json").lines[-1]["both.realistic.mrr"])
    chosen = name if kind == "attack" else "upload-difference"
    attacked = fedkge("attack", trained, "--attack", chosen, "--every", "3", "--json").lines
    assert {line["attack"] for line in attacked} == {chosen}
    assert fedkge("account", trained, "--json").code == (PrivacyError.exit_code if kind == "attack" else 0)
    if kind in {"selection", "defence"}:
        spent = [json.loads(line) for line in (trained / "ledger.jsonl").read_text().splitlines()]
        assert name in json.dumps(spent)
    assert fedkge("report", trained).code == 0
    document = (trained / "report-for-owner.json").read_text()
    assert {"model": "SimplE", "aggregation": "TransE"}.get(kind, name) in document


def test_help_lists_it(kind: str) -> None:
    verb = "attack" if kind == "attack" else "train"
    printed = re.sub(r"[\s│]+", "", fedkge(verb, "--help").out)
    assert REGISTRATIONS[kind][1] in printed


@pytest.fixture(autouse=True)
def _registered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of this module runs on a registered name."""
    for registry, name, entry in REGISTRATIONS.values():
        if request.cls and request.cls.name == name:
            monkeypatch.setitem(registry, name, entry)


class TestSimplE(ModelCase):
    name = "simple"

    def formula(self, head: Any, relation: Any, tail: Any) -> float:
        (h1, h2), (r1, r2), (t1, t2) = (np.split(row, 2) for row in (head, relation, tail))
        return float((h1 * r1 * t2).sum() + (h2 * r2 * t1).sum()) / 2


class TestMedian(AggregationCase):
    name = "median"

    def rule(self, numbers: Sequence[float], claims: Sequence[float]) -> float:
        return float(np.median(numbers))


@pytest.mark.parametrize("model", ["transe", "rotate", "distmult", "complex"])
def test_the_attack_finds_members(model: str) -> None:
    planted = federation(model)
    check(Advantage(), planted.view("server"))
    scores = Advantage().score(planted.view("server"), planted.canaries)
    assert np.isfinite(scores).all()
    assert area_under_curve(scores, planted.members) > 0.6
    with pytest.raises(ConfigurationError, match="is for server"):
        check(Advantage(), planted.view("client"))


def test_the_page_shows_these_files_and_these_lines() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_with_files(text), "copy the files into the page: python -m tests.extensions.test_extensions"
    shown = set(BLOCK.findall(text))
    assert shown == {"simple.py", "advantage.py", "lottery.py", "median.py", "counts_alone.py"}


def page_with_files(text: str) -> str:
    def block(match: re.Match[str]) -> str:
        return f"<!-- file: {match[1]} -->\n```python\n{(FOLDER / match[1]).read_text(encoding='utf-8')}```"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    PAGE.write_text(page_with_files(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
