"""Trackers write what they hear; without their package they say what to install."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fedkge.base.errors import ConfigurationError, UnavailableError
from fedkge.configuration import Configuration
from fedkge.federation.observer import Observer, Outlook
from fedkge.trackers import TRACKERS, make_tracker

CONFIGURATION = Configuration.of(rounds=2, seed=1)
PACKAGES = {"tensorboard": "tensorboard", "mlflow": "mlflow"}


def play(observer: Observer) -> None:
    observer.begin(Outlook(1, 2, 100, ("client-0",), "TransE"))
    observer.advance(100)
    facts = {
        "round": 1,
        "loss": 0.5,
        "seconds": 2.0,
        "refused": {},
        "bytes_up": {"a": 3, "b": 4},
        "bytes_down": {"a": 5},
    }
    observer.round_done(facts)
    observer.evaluated({"round": 1, "split": "valid", "both.realistic.mrr": 0.25, "clients": {}})
    observer.end({"round": 1, "split": "test", "both.realistic.mrr": 0.125, "clients": {}})


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = [module for module in sys.modules if module.split(".")[0] == PACKAGES[name]]
    for module in (*loaded, PACKAGES[name]):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnavailableError, match=r"pip install 'fedkge\[trackers\]'"):
        make_tracker(name, CONFIGURATION, tmp_path)


def test_an_unknown_tracker_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean mlflow"):
        make_tracker("mlflo", CONFIGURATION, tmp_path)


def test_mlflow_hears_parameters_and_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    fake = ModuleType("mlflow")
    for name in ("set_experiment", "start_run", "log_params", "log_metrics", "end_run"):
        setattr(fake, name, lambda *words, _name=name, **named: heard.append((_name, words, named)))
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    play(make_tracker("mlflow", CONFIGURATION, tmp_path / "my-run"))
    calls = [name for name, _, _ in heard]
    assert calls == [
        "set_experiment",
        "start_run",
        "log_params",
        "log_metrics",
        "log_metrics",
        "log_metrics",
        "end_run",
    ]
    assert heard[1][2] == {"run_name": "my-run"}
    assert heard[2][1][0]["rounds"] == 2
    assert heard[3][1:] == (({"loss": 0.5, "seconds": 2.0, "bytes_up": 7.0, "bytes_down": 5.0},), {"step": 1})
    assert heard[5][1:] == (({"test.both.realistic.mrr": 0.125},), {"step": 1})


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_writes_events_that_tensorboard_reads(tmp_path: Path) -> None:
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the trackers extra"
    )
    play(make_tracker("tensorboard", CONFIGURATION, tmp_path))
    events = accumulators.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.value for event in events.Scalars("round/loss")] == [0.5]
    assert [event.value for event in events.Scalars("valid/both.realistic.mrr")] == [0.25]
    assert [event.value for event in events.Scalars("test/both.realistic.mrr")] == [0.125]


@pytest.mark.filterwarnings("ignore")
def test_mlflow_itself_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow: Any = pytest.importorskip("mlflow", reason="needs the trackers extra")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    play(make_tracker("mlflow", CONFIGURATION, tmp_path / "my-run"))
    assert any((tmp_path / "store").rglob("test.both.realistic.mrr"))
