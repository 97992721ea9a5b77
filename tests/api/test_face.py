"""The public face: its names, its options, its results as tables, and that it costs nothing to import."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import fedkge as fk
from fedkge import configuration
from fedkge.api.attacks import AttackOptions, attack_plan
from fedkge.api.options import TrainOptions
from fedkge.base.errors import ConfigurationError, UnavailableError
from fedkge.runs import run as runs

VERBS = {"attack", "audit", "compare", "export", "load", "open_run", "predict", "report", "resume", "split", "train"}
OPTIONS: dict[str, Any] = {"rounds": 2, "dimension": 8, "negatives": 8, "seed": 3, "threads": 1}


@pytest.fixture(scope="module")
def shards() -> fk.Shards:
    return fk.split(fk.synthetic_graph(entities=60, relations=4, triples=500, seed=1), clients=2, seed=7, overlap=1.0)


@pytest.fixture(scope="module")
def run(shards: fk.Shards, tmp_path_factory: pytest.TempPathFactory) -> fk.Run:
    folder = tmp_path_factory.mktemp("runs")
    return fk.train(shards, out=folder / "open", record="all", canaries=20, **OPTIONS)


@pytest.fixture(scope="module")
def defended(shards: fk.Shards, tmp_path_factory: pytest.TempPathFactory) -> fk.Run:
    return fk.train(shards, out=tmp_path_factory.mktemp("runs") / "defended", epsilon=8.0, **OPTIONS)


def test_every_verb_is_there_and_nothing_else() -> None:
    assert set(fk.__all__) > {*VERBS, "account", "tune"}
    assert dir(fk) == sorted(fk.__all__)
    for name in fk.__all__:
        assert getattr(fk, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        fk.no_such_name  # noqa: B018


def test_rooms_of_the_same_name_do_not_hide_the_functions() -> None:
    import_module("fedkge.audit.bound")
    import_module("fedkge.report.page")
    assert inspect.isfunction(fk.audit)
    assert inspect.isfunction(fk.report)


def test_import_loads_nothing() -> None:
    """Neither NumPy nor a room of fedkge: whoever asks for a name gets it then."""
    code = "import sys, fedkge; print([n for n in sys.modules if n == 'numpy' or n.startswith('fedkge.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_train_has_every_option_of_the_configuration() -> None:
    hints = get_type_hints(TrainOptions)
    expected = {name: option.info.annotation for name, option in configuration.OPTIONS.items() if name != "data"}
    assert hints == expected


def test_attack_has_every_option_of_its_plan() -> None:
    parameters = inspect.signature(attack_plan, eval_str=True).parameters.values()
    expected = {one.name: one.annotation for one in parameters if one.kind is one.KEYWORD_ONLY}
    assert get_type_hints(AttackOptions) == expected


def test_a_run_has_the_verbs_as_methods(run: fk.Run) -> None:
    assert isinstance(run, runs.Run)
    for name in ("account", "attack", "audit", "compare", "evaluate", "export", "predict", "remaining", "report"):
        assert callable(getattr(run, name))


def test_results_are_tables(run: fk.Run, defended: fk.Run) -> None:
    results = [
        run.evaluate(),
        run.attack("upload-difference", targets="B,C", targets_count=10),
        run.compare(defended),
        run.export(overwrite=True),
        run.report(),
        defended.remaining(),
        defended.account(),
        run.predict(run.relations[0], head=run.shards[0].entities[0], client="client-0"),
    ]
    for result in results:
        table = result.to_frame("pyarrow")
        assert table.num_rows == len(result.rows()) > 0
        assert set(result.shown) <= set(table.column_names)
        assert result._repr_html_().startswith("<p>")
        assert repr(result).count("\n") <= 8


def test_evaluation_has_all_clients_each_client_and_the_controls(run: fk.Run) -> None:
    frame = run.evaluate().to_frame("pyarrow").to_pydict()
    assert list(dict.fromkeys(frame["client"])) == ["all", "client-0", "client-1"]
    assert list(dict.fromkeys(frame["scores"])) == ["model", "popularity", "popularity, epsilon 1"]
    assert frame["both.realistic.mrr"][0] == pytest.approx(run.metrics[-1]["both.realistic.mrr"])


def test_remaining_is_what_the_ledger_says(run: fk.Run, defended: fk.Run) -> None:
    for client, budget in defended.remaining().items():
        assert budget.promised == 8.0
        assert budget.left == pytest.approx(8.0 - defended.epsilon()[client])
        assert budget.private
    assert not any(budget.private for budget in run.remaining().values())


def test_remaining_tells_of_overwritten_runs(shards: fk.Shards, tmp_path: Path) -> None:
    fk.train(shards, out=tmp_path, epsilon=8.0, **OPTIONS)
    again = fk.train(shards, out=tmp_path, overwrite=True, epsilon=4.0, **OPTIONS)
    for budget in again.remaining().values():
        assert budget.with_overwritten is not None
        assert budget.with_overwritten > budget.spent
    assert "overwritten" in repr(again.remaining())
    assert len(again.account().runs) == 2


def test_a_path_does_as_well_as_a_run(run: fk.Run, shards: fk.Shards) -> None:
    assert run.directory is not None
    opened = fk.open_run(run.directory, data=shards)
    assert isinstance(opened, fk.Run)
    assert fk.report(str(run.directory)).verdict == run.report().verdict


def test_a_run_on_a_graph_from_memory_says_that_it_needs_the_graph(run: fk.Run) -> None:
    assert run.directory is not None
    for verb in (fk.open_run, fk.resume):
        with pytest.raises(ConfigurationError, match=r"expected the run's data at 'synthetic'.* as data="):
            verb(run.directory)


def test_a_run_in_memory_says_what_it_needs(shards: fk.Shards) -> None:
    run = fk.train(shards, **OPTIONS)
    for verb in (run.attack, run.report, run.audit, run.export):
        with pytest.raises(ConfigurationError, match="train with"):
            verb()


def test_a_library_that_is_not_there_is_named(run: fk.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UnavailableError, match="pip install polars"):
        run.evaluate().to_frame("polars")


def test_data_frames_are_made_by_what_is_installed(run: fk.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for pandas, which is looked for first."""
    pandas = module_from_spec(ModuleSpec("pandas", None))
    pandas.DataFrame = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert run.evaluate().to_frame()["client"][0] == "all"
