"""TensorBoard: event files in the run directory, `tensorboard --logdir RUN/tensorboard`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fedkge.base.errors import UnavailableError
from fedkge.configuration import Configuration
from fedkge.federation.observer import Observer

FOLDER = "tensorboard"


class TensorBoardTracker(Observer):
    """Writes loss, seconds and bytes of every round, and all metrics of every evaluated round."""

    def __init__(self, configuration: Configuration, run: Path) -> None:  # noqa: ARG002
        try:
            self._events = import_module("tensorboard.compat.proto.event_pb2")
            self._summaries = import_module("tensorboard.compat.proto.summary_pb2")
            self._writers = import_module("tensorboard.summary.writer.event_file_writer")
        except ImportError as error:
            raise UnavailableError("TensorBoard is not installed: pip install 'fedkge[trackers]'") from error
        self._folder = run / FOLDER
        self._writer: Any = None

    def round_done(self, facts: Mapping[str, Any]) -> None:
        """Write the round's numbers."""
        bytes_up, bytes_down = sum(facts["bytes_up"].values()), sum(facts["bytes_down"].values())
        numbers = {"loss": facts["loss"], "seconds": facts["seconds"], "bytes_up": bytes_up, "bytes_down": bytes_down}
        self._write(facts["round"], {f"round/{name}": value for name, value in numbers.items() if value is not None})

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """Write the metrics."""
        metrics = {key: value for key, value in record.items() if ".realistic." in key}
        self._write(record["round"], {f"{record['split']}/{key}": value for key, value in metrics.items()})

    def end(self, record: Mapping[str, Any]) -> None:
        """Write the last metrics and close the file."""
        self.evaluated(record)
        self._writer.close()
        self._writer = None

    def _write(self, step: int, numbers: Mapping[str, float]) -> None:
        if self._writer is None:
            self._writer = self._writers.EventFileWriter(str(self._folder))
        values = [self._summaries.Summary.Value(tag=tag, simple_value=number) for tag, number in numbers.items()]
        summary = self._summaries.Summary(value=values)
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()
