"""MLflow: one MLflow run per fedkge run, in the experiment "fedkge", at MLFLOW_TRACKING_URI."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fedkge.base.errors import UnavailableError
from fedkge.configuration import Configuration, kebab
from fedkge.federation.observer import Observer, Outlook

EXPERIMENT = "fedkge"


class MlflowTracker(Observer):
    """Logs the configuration as parameters, and the numbers of rounds and evaluations as metrics."""

    def __init__(self, configuration: Configuration, run: Path) -> None:
        try:
            self._mlflow: Any = import_module("mlflow")
        except ImportError as error:
            raise UnavailableError("MLflow is not installed: pip install 'fedkge[trackers]'") from error
        self._configuration, self._run = configuration, run

    def begin(self, outlook: Outlook) -> None:  # noqa: ARG002
        """Open the MLflow run. A resumed run continues as a new MLflow run of the same name."""
        self._mlflow.set_experiment(EXPERIMENT)
        self._mlflow.start_run(run_name=self._run.name)
        self._mlflow.log_params({kebab(name): value for name, value in self._configuration.as_options().items()})

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """Log the round's numbers."""
        numbers = {name: facts[name] for name in ("loss", "seconds") if facts[name] is not None}
        numbers |= {name: float(sum(facts[name].values())) for name in ("bytes_up", "bytes_down")}
        self._mlflow.log_metrics(numbers, step=facts["round"])

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """Log the metrics."""
        metrics = {f"{record['split']}.{key}": value for key, value in record.items() if ".realistic." in key}
        self._mlflow.log_metrics(metrics, step=record["round"])

    def end(self, record: Mapping[str, Any]) -> None:
        """Log the last metrics and close the MLflow run."""
        self.evaluated(record)
        self._mlflow.end_run()
