"""Start, resume and open runs: what the command line and Python callers use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from fedkge.accounting.ledger_lines import run_of
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import CHANGEABLE, Configuration, kebab, parse
from fedkge.defences import chosen_defence
from fedkge.defences.name_release import FOLDER, NameFiles, kept_names
from fedkge.experiments.inline import check_inline, stand_ins
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import insert_canaries, keep_canaries
from fedkge.federation.checks import check_training
from fedkge.federation.observer import Observer
from fedkge.federation.training import Federation, drafted
from fedkge.graph import Graph
from fedkge.graph.datasets import DATASETS, load
from fedkge.graph.ordered import ordered
from fedkge.graph.readers import parse_columns
from fedkge.graph.restricted import restricted
from fedkge.graph.shards import client_names
from fedkge.graph.shards_on_disk import holds_shards, load_shards
from fedkge.graph.split import Shards, split
from fedkge.runs.account import open_account
from fedkge.runs.model_file import check_model
from fedkge.runs.run import (
    CONFIG,
    MODEL,
    NUMBERED,
    Run,
    RunDirectory,
    check_has_data,
    check_same_data,
    provenance_of,
)
from fedkge.runs.vectors import start_vectors
from fedkge.store.randomness import fresh_seed

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
    configuration = _seeded(parse({"data": name, **clients, **options}))
    graphs = None if isinstance(data, str) else shards_of(data, configuration).graphs
    return start(configuration, graphs, out, overwrite=overwrite, observer=observer)


def start(
    configuration: Configuration,
    shards: Sequence[Graph] | None = None,
    out: str | PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Train what `configuration` describes; without `shards` its data is loaded and split."""
    check(configuration)
    configuration = _seeded(configuration)
    directory = RunDirectory(Path(out)) if out is not None else None
    if directory:
        check_free(directory.path, overwrite)
        _check_account(directory)
    given = shards if shards is not None else shards_of(configuration.data.source, configuration).graphs
    graphs = _in_public_order(given, configuration)
    if len(graphs) != configuration.data.clients:
        configuration = configuration.updated(clients=len(graphs))
    configuration = _with_full_names(configuration, client_names(len(graphs)))
    graphs, canaries = insert_canaries(graphs, configuration)
    vectors = start_vectors(configuration, graphs)
    draft = drafted(graphs, configuration, kept=directory is not None)  # refuses an impossible budget before a removal
    if directory:
        if directory.exists():
            directory.remove()
        directory.create(configuration, provenance_of(graphs, configuration, directory.data_key()))
        keep_canaries(directory.path, canaries, graphs)
    disguise = stand_ins(configuration, canaries, graphs, directory.path if directory else None)
    return Federation(graphs, configuration, directory, observer, vectors, disguise, draft).run()


def resume(
    path: str | PathLike[str],
    *,
    data: Data | None = None,
    observer: Observer | None = None,
    threads: int | None = None,
) -> Run:
    """Continue a run; a finished one is only opened. `data` is needed for runs on graphs made in Python.

    `threads` overrules the saved number this once: it has no influence on the result.
    """
    directory = RunDirectory(Path(path))
    configuration, graphs, canaries = _reopen(directory, data)
    if threads is not None:
        configuration = configuration.updated(threads=threads)
    keep_canaries(directory.path, canaries, graphs)
    begun = any(directory.checkpoints.glob("*.safetensors"))
    vectors = None if begun else start_vectors(configuration, graphs)
    disguise = stand_ins(configuration, canaries, graphs, directory.path)
    return Federation(graphs, configuration, directory, observer, vectors, disguise).run()


def open_run(path: str | PathLike[str], *, data: Data | None = None) -> Run:
    """A finished run, ready to evaluate, predict and export."""
    directory = RunDirectory(Path(path))
    configuration, graphs, _ = _reopen(directory, data)
    graphs = _with_kept_names(directory, configuration, graphs)
    tensors, _ = directory.read_model()
    entities, relations = directory.read_vocabularies()
    check_model(tensors, graphs, configuration, (len(entities), len(relations)), directory.path / MODEL)
    ledger = open_account(directory.path)
    return Run(configuration, graphs, entities, relations, tensors, directory.read_metrics(), directory.path, ledger)


def price_of_attack(run: Run, observer: Observer | None = None) -> dict[str, float]:
    """Test MRR (both sides) of a run with an attack in it, and of the same federation, trained again, without."""
    # The canaries are in the shards already: both federations train on the same triples.
    honest = run.configuration.updated(inline_attack="none", record="none", canaries=0)
    twin = start(honest, run.shards, observer=observer)
    key = "both.realistic.mrr"
    if not run.metrics or not twin.metrics:
        raise RunError("the price of an attack is measured on test triples, and this run has none")
    return {"attacked": float(run.metrics[-1][key]), "honest": float(twin.metrics[-1][key])}


def _with_full_names(configuration: Configuration, names: Sequence[str]) -> Configuration:
    """With more than ten clients client-0 is called client-00: victim and adversary may be named either way."""
    short = {f"client-{number}": name for number, name in enumerate(names)}
    victim, adversary = configuration.experiment.victim, configuration.experiment.adversary
    return configuration.updated(victim=short.get(victim, victim), adversary=short.get(adversary, adversary))


def _seeded(configuration: Configuration) -> Configuration:
    if configuration.experiment.seed is not None:
        return configuration
    return configuration.updated(seed=fresh_seed())


def check(configuration: Configuration) -> None:
    """Refuse names that do not exist, before anything is read or written."""
    check_training(configuration)
    check_inline(configuration)


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse a directory that holds a run, unless it may be overwritten; what is no run is never overwritten."""
    directory = RunDirectory(path)
    if not directory.exists():
        return
    if overwrite and "fedkge" not in directory.read_configuration()[1]:
        raise RunError(f"{path}: {CONFIG} is not that of a fedkge run, so nothing is removed; choose another --out")
    if not overwrite:
        raise RunError(
            f"{path}: a run exists here; continue it with `fedkge resume {path}`, "
            "choose another --out, or say --overwrite"
        )


def _check_account(directory: RunDirectory) -> None:
    """Refuse to overwrite a run whose ledger lacks lines: its states, which show that, would be removed for good.

    A damaged state shows nothing, and keeps nobody from beginning again.
    """
    if not directory.exists() or not (any(directory.checkpoints.glob("*")) or directory.model.exists()):
        return
    run = directory.read_configuration()[1].get("run", "")
    earlier = (run_of(path.read_bytes(), str(path)) for path in directory.earlier_ledgers())
    if not directory.ledger.exists() and run and run in earlier:
        return  # an earlier --overwrite was broken off after it had put the ledger aside
    with suppress(RunError):
        open_account(directory.path)


def shards_of(data: Data, configuration: Configuration) -> Shards:
    """The clients' graphs: given, read from a folder that `fedkge data split` wrote, or split from a graph."""
    if isinstance(data, Shards):
        return data
    if isinstance(data, str) and data not in DATASETS and holds_shards(Path(data)):
        shards = load_shards(Path(data))
        if configuration.data.clients not in (1, len(shards)):
            raise ConfigurationError(
                f"{data}: the folder holds {len(shards)} shards, got --clients {configuration.data.clients}; leave "
                f"it out"
            )
        return shards
    if isinstance(data, str):
        columns, skip = parse_columns(configuration.data.columns), configuration.data.skip_header
        graph = load(data, columns=columns, skip_header=skip)
    else:
        graph = data
    return split(
        graph,
        configuration.data.clients,
        configuration.data.split,
        configuration.experiment.seed or 0,
        configuration.data.overlap,
    )


def _in_public_order(graphs: Sequence[Graph], configuration: Configuration) -> tuple[Graph, ...]:
    """The graphs; under a defence with names in order: that of a file tells which stand in one triple."""
    return tuple(map(ordered, graphs)) if chosen_defence(configuration).keeps_ledger else tuple(graphs)


def _reopen(directory: RunDirectory, data: Data | None) -> tuple[Configuration, tuple[Graph, ...], Targets | None]:
    configuration, provenance = directory.read_configuration()
    check_has_data(directory.path, provenance)
    if provenance.get("configuration") != configuration.identity:
        raise RunError(
            f"{directory.path / CONFIG} was changed after the run began; restore it (only "
            f"{', '.join(sorted(map(kebab, CHANGEABLE)))} may change), or start a new run"
        )
    given = shards_of(configuration.data.source if data is None else data, configuration).graphs
    if not provenance.get(NUMBERED):
        given = _in_public_order(given, configuration)
    graphs, canaries = insert_canaries(given, configuration, directory.path)
    check_same_data(directory, provenance, graphs)
    return configuration, graphs, canaries


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
