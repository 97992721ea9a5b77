"""A CSV with column names of its own, from the command line to a run that can be opened again."""

from __future__ import annotations

import json

import pytest

from fedkge.api.training import open_run, start
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.defences import parse
from tests.end_to_end.test_command_line import fedkge


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "facts.csv"
    rows = [f"p{i},knows,p{(i + 1) % 9},0.5" for i in range(9)]
    path.write_text("\n".join(["who,does,whom,weight", *rows]) + "\n")
    return path


def test_described_trained_and_opened_by_these_columns(table, tmp_path):
    shown = fedkge("data", "describe", table, "--columns", "who,does,whom", "--json")
    assert json.loads(shown.out)["entities"] == 9
    options = {"data": str(table), "columns": "who,does,whom", "rounds": 1, "dimension": 4, "negatives": 4, "seed": 1}
    start(parse(options), None, tmp_path / "run")
    assert list(open_run(tmp_path / "run").relations) == ["knows"]


def test_without_them_the_error_says_what_to_do(table):
    with pytest.raises(DataError, match="name them with --columns HEAD,RELATION,TAIL"):
        start(parse({"data": str(table)}))


@pytest.mark.parametrize("text", ["who,does", "who,does,who", ",,"])
def test_three_different_names_are_expected(table, text):
    with pytest.raises(ConfigurationError, match="expected three different names like head,relation,tail"):
        start(parse({"data": str(table), "columns": text}))
