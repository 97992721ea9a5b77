"""Trackers: observers that send the progress of a run to an external tool. The tool is imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from fedkge.base.registry import look_up
from fedkge.configuration import Configuration
from fedkge.federation.observer import Observer
from fedkge.trackers.mlflow import MlflowTracker
from fedkge.trackers.tensorboard import TensorBoardTracker

Maker: TypeAlias = Callable[[Configuration, Path], Observer]

TRACKERS: dict[str, Maker] = {"tensorboard": TensorBoardTracker, "mlflow": MlflowTracker}
"""Every tracker by name; a new one is one file and one line here."""


def make_tracker(name: str, configuration: Configuration, run: Path) -> Observer:
    """The tracker called `name` for the run in directory `run`, or an error that lists similar names."""
    return look_up(TRACKERS, name, "tracker")(configuration, run)


__all__ = ["TRACKERS", "make_tracker"]
