"""Start, resume and open runs: what the command line and Python callers use."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from fedkge.configuration import Configuration, parse
from fedkge.errors import RunError
from fedkge.federation.observer import Observer
from fedkge.federation.randomness import fresh_seed
from fedkge.federation.run import Run, RunDirectory, data_digest, provenance_of
from fedkge.federation.training import Federation
from fedkge.graph import Graph
from fedkge.graph.datasets import load
from fedkge.graph.split import Shards, split
from fedkge.vectors import read_vectors

Data: TypeAlias = str | Graph | Shards
"""A name or path, a graph, or shards that were split before."""


def train(
    data: Data,
    *,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    **options: Any,
) -> Run:
    """Train a federation (of one, for one graph) and return the run.

    Options are those of `Configuration`. With `out`, everything is kept in a run directory that `resume` can
    continue after a crash; an existing run there is refused unless `overwrite`.
    """
    name = data if isinstance(data, str) else data.name
    clients = {"clients": len(data)} if isinstance(data, Shards) else {}
    configuration = parse({"data": name, **clients, **options})
    return start(configuration, _shards(data, configuration), out, overwrite=overwrite, observer=observer)


def start(
    configuration: Configuration,
    shards: Sequence[Graph] | None = None,
    out: str | PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Train what `configuration` describes; without `shards` its data is loaded and split."""
    if configuration.seed is None:
        configuration = configuration.model_copy(update={"seed": fresh_seed()})
    directory = RunDirectory(Path(out)) if out is not None else None
    if directory and directory.exists():
        _make_room(directory, overwrite)
    graphs = tuple(shards if shards is not None else _shards(configuration.data, configuration))
    start_vectors = read_vectors(Path(configuration.init)) if configuration.init else None
    if directory:
        directory.create(configuration, provenance_of(graphs, configuration))
    return Federation(graphs, configuration, directory, observer, start_vectors).run()


def resume(path: str | PathLike[str], *, data: Data | None = None, observer: Observer | None = None) -> Run:
    """Continue a run; a finished one is only opened. `data` is needed for runs on graphs made in Python."""
    directory = RunDirectory(Path(path))
    configuration, graphs = _reopen(directory, data)
    start_vectors = read_vectors(Path(configuration.init)) if configuration.init else None
    return Federation(graphs, configuration, directory, observer, start_vectors).run()


def open_run(path: str | PathLike[str], *, data: Data | None = None) -> Run:
    """A finished run, ready to evaluate, predict and export."""
    directory = RunDirectory(Path(path))
    configuration, graphs = _reopen(directory, data)
    tensors, _ = directory.read_model()
    entities, relations = directory.read_vocabularies()
    return Run(configuration, graphs, entities, relations, tensors, directory.read_metrics(), directory.path)


def _shards(data: Data, configuration: Configuration) -> tuple[Graph, ...]:
    if isinstance(data, Shards):
        return data.graphs
    graph = load(data) if isinstance(data, str) else data
    return split(
        graph, configuration.clients, configuration.split, configuration.seed or 0, configuration.overlap
    ).graphs


def _reopen(directory: RunDirectory, data: Data | None) -> tuple[Configuration, tuple[Graph, ...]]:
    configuration, provenance = directory.read_configuration()
    graphs = _shards(configuration.data if data is None else data, configuration)
    expected, found = str(provenance.get("data")), data_digest(graphs)
    if expected != found:
        raise RunError(
            f"{directory.path}: the run was trained on data {expected[:16]}, but {configuration.data!r} is now "
            f"{found[:16]}; restore the data, or start a new run"
        )
    return configuration, graphs


def _make_room(directory: RunDirectory, overwrite: bool) -> None:
    if not overwrite:
        raise RunError(
            f"{directory.path}: a run exists here; continue it with `fedkge resume {directory.path}`, "
            "choose another --out, or say --overwrite"
        )
    shutil.rmtree(directory.path)
