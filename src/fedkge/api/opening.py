"""Reopen runs and find their data: what every verb that takes a run shares."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration, Mark, kebab, marked
from fedkge.defences import chosen_defence
from fedkge.defences.name_release import FOLDER, NameFiles, kept_names
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import insert_canaries
from fedkge.graph import Graph
from fedkge.graph.datasets import DATASETS, load
from fedkge.graph.ordered import ordered
from fedkge.graph.readers import parse_columns
from fedkge.graph.restricted import restricted
from fedkge.graph.shards import client_names
from fedkge.graph.shards_on_disk import holds_shards, load_shards
from fedkge.graph.split import Shards, split
from fedkge.runs.account import open_account
from fedkge.runs.directory import CONFIG, MODEL, NUMBERED, RunDirectory, check_has_data, check_same_data
from fedkge.runs.model_file import check_model
from fedkge.runs.run import Run

Data: TypeAlias = str | Graph | Shards
"""A name or path, a graph, or shards that were split before."""
RunLike: TypeAlias = Run | str | PathLike[str]
"""A run, or the path of its directory."""


def opened(run: RunLike, *, data: Data | None = None) -> Run:
    """The run itself, or the finished run in a directory. `data` is needed for runs on graphs made in Python."""
    if isinstance(run, Run):
        return run
    directory = RunDirectory(Path(run))
    configuration, graphs, _ = reopen(directory, data)
    graphs = _with_kept_names(directory, configuration, graphs)
    tensors, _ = directory.read_model()
    entities, relations = directory.read_vocabularies()
    check_model(tensors, graphs, configuration, (len(entities), len(relations)), directory.path / MODEL)
    ledger = open_account(directory.path)
    return Run(configuration, graphs, entities, relations, tensors, directory.read_metrics(), directory.path, ledger)


def directory_of(run: RunLike) -> Path:
    """Where a run is kept; a run in memory alone is an error that says what to do.

    >>> directory_of("runs/first").name
    'first'
    """
    path = run.directory if isinstance(run, Run) else Path(run)
    if path is None:
        raise ConfigurationError("expected a run in a directory, got a run in memory: train with out=DIRECTORY")
    return path


def shards_of(data: Data, configuration: Configuration) -> Shards:
    """The clients' graphs: given, read from a folder that `fedkge data split` wrote, or split from a graph."""
    if isinstance(data, Shards):
        return data
    if isinstance(data, str) and data not in DATASETS and holds_shards(Path(data)):
        shards = load_shards(Path(data))
        if configuration.data.clients not in (1, len(shards)):
            raise ConfigurationError(
                f"{data}: the folder holds {len(shards)} shards, got --clients {configuration.data.clients}; leave "
                "it out"
            )
        return shards
    if isinstance(data, str):
        columns, skip = parse_columns(configuration.data.columns), configuration.data.skip_header
        graph = load(data, columns=columns, skip_header=skip)
    else:
        graph = data
    options = configuration.data
    return split(graph, options.clients, options.split, configuration.experiment.seed or 0, options.overlap)


def in_public_order(graphs: Sequence[Graph], configuration: Configuration) -> tuple[Graph, ...]:
    """The graphs; under a defence with names in order: that of a file tells which stand in one triple."""
    return tuple(map(ordered, graphs)) if chosen_defence(configuration).keeps_ledger else tuple(graphs)


def reopen(directory: RunDirectory, data: Data | None) -> tuple[Configuration, tuple[Graph, ...], Targets | None]:
    """The configuration of a run, its clients' graphs and its canaries, checked against what it began with."""
    configuration, provenance = directory.read_configuration()
    check_has_data(directory.path, provenance)
    if provenance.get("configuration") != configuration.identity:
        raise RunError(
            f"{directory.path / CONFIG} was changed after the run began; restore it (only "
            f"{', '.join(sorted(map(kebab, marked(Mark.MAY_CHANGE))))} may change), or start a new run"
        )
    given = _data_of(directory.path, configuration).graphs if data is None else shards_of(data, configuration).graphs
    if not provenance.get(NUMBERED):
        given = in_public_order(given, configuration)
    graphs, canaries = insert_canaries(given, configuration, directory.path)
    check_same_data(directory, provenance, graphs)
    return configuration, graphs, canaries


def _data_of(path: Path, configuration: Configuration) -> Shards:
    """The data that a run names; a graph that was given in Python has a name only, and cannot be found again."""
    source = configuration.data.source
    try:
        return shards_of(source, configuration)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{path}: expected the run's data at {source!r}, got this: {error}. In Python, pass the same graph or "
            "shards as data="
        ) from None


def _with_kept_names(
    directory: RunDirectory, configuration: Configuration, graphs: tuple[Graph, ...]
) -> tuple[Graph, ...]:
    """The graphs without the names that stayed at home, where names were released by a threshold."""
    if configuration.privacy.names != "threshold":
        return graphs
    ledger, files = open_account(directory.path), NameFiles(directory.path / FOLDER)
    if ledger is None:
        return graphs
    owners = ledger.clients if len(graphs) == 1 and len(ledger.clients) == 1 else client_names(len(graphs))
    made = []
    for owner, client, graph in zip(owners, client_names(len(graphs)), graphs, strict=True):
        names = kept_names(ledger, owner, files, client)  # a site's ledger knows it by its own name
        made.append(graph if names is None else restricted(graph, names))
    return tuple(made)
