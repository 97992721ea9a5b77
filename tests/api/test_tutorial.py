"""The tutorial's notebook runs from its first cell to its last; what it shows is short and names no entity."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
ENTITY = re.compile(r"\be\d+\b")
"""A name of the synthetic graph."""
LONGEST, MOST_LINES = 4_000, 12


@pytest.fixture(scope="module")
def notebooks() -> Any:
    """What CI runs notebooks with."""
    spec = spec_from_file_location("notebooks", ROOT / ".ci" / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def notebook() -> Any:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def check_outputs(outputs: list[dict[str, Any]]) -> None:
    for output in outputs:
        texts = ["".join(text) for text in (output.get("data") or {"text/plain": output.get("text", [])}).values()]
        for text in texts:
            assert len(text) <= LONGEST
            assert text.count("\n") <= MOST_LINES
            assert not ENTITY.search(text), text


def test_every_cell_runs(notebooks: Any, notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = notebooks.executed(notebook)
    kept = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [len(outputs) for outputs in found] == [len(outputs) for outputs in kept]
    for outputs in found:
        check_outputs(outputs)


def test_what_is_kept_is_short_and_names_nobody(notebooks: Any, notebook: Any) -> None:
    for cell in notebook["cells"]:
        check_outputs(cell.get("outputs", []))
    page = notebooks.as_markdown(notebook)
    assert page.startswith("# Tutorial in Python")
    assert "```text\nRun of synthetic" in page


def test_names_in_an_output_are_noticed(notebooks: Any) -> None:
    source = [
        "import fedkge as fk\n",
        "list(fk.synthetic_graph(entities=40, relations=2, triples=100, seed=1).entities)",
    ]
    leaky = {"cells": [{"cell_type": "code", "source": source}]}
    with pytest.raises(AssertionError):
        check_outputs(notebooks.executed(leaky)[0])
