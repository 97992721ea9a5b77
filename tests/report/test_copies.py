"""The report about a noisy copy: how many canaries it was asked about, and which canaries to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedkge.audit import run_audit
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.report import gather
from fedkge.report.document import Document
from fedkge.runs import train

COPY = "recommended"
"""The defence by copy."""
SHARDS = split(synthetic_graph(entities=400, relations=6, triples=2500, seed=1), clients=2, by="entity", overlap=0.8)
OPTIONS: dict[str, Any] = {
    "defence": COPY,
    "epsilon": 6.0,
    "rounds": 1,
    "dimension": 8,
    "negatives": 4,
    "evaluate_every": 0,
    "seed": 3,
    "canaries": 200,
    "canary_coins": "seeded",
}
ADVICE = "--canary-source likely"


def reported(folder: Path, source: str) -> Document:
    run_audit(train(SHARDS, out=folder, canary_source=source, **OPTIONS), ["copy"])
    return gather(folder)


@pytest.mark.parametrize(("source", "warned"), [("victim", True), ("likely", False)])
def test_canaries_that_were_not_asked_about_are_counted(tmp_path: Path, source: str, warned: bool) -> None:
    document = reported(tmp_path / "run", source)
    assert any(ADVICE in warning for warning in document.claim.warnings) == warned
    (told,) = [warning for warning in document.audit.warnings if "was asked about" in warning]
    assert (ADVICE in told) == warned
