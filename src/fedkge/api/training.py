"""Start, resume and open runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Unpack

from fedkge.accounting.ledger_lines import run_of
from fedkge.api.opening import Data, in_public_order, opened, reopen, shards_of
from fedkge.api.options import TrainOptions
from fedkge.api.run import Run
from fedkge.base.errors import RunError
from fedkge.configuration import Configuration
from fedkge.defences import parse
from fedkge.experiments.inline import check_inline, stand_ins
from fedkge.experiments.targets.canaries import insert_canaries, keep_canaries
from fedkge.federation.checks import check_training
from fedkge.federation.drafts import drafted
from fedkge.federation.observer import Observer
from fedkge.federation.training import Federation
from fedkge.graph import Graph
from fedkge.graph.shards import client_names
from fedkge.graph.split import Shards
from fedkge.runs import run as runs
from fedkge.runs.account import open_account
from fedkge.runs.directory import CONFIG, RunDirectory, provenance_of
from fedkge.runs.vectors import start_vectors
from fedkge.store.randomness import fresh_seed


def train(
    data: Data,
    *,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    **options: Unpack[TrainOptions],
) -> Run:
    """Train a federation (of one, for one graph) and return the run.

    `options` are those of `fedkge train`, with underscores: `epsilon=8`, `batch_size=64`. With `out`, everything is
    kept in a run directory that `resume` can continue after a crash; an existing run there is refused unless
    `overwrite`.

    >>> from fedkge.graph.synthetic import synthetic_graph
    >>> train(synthetic_graph(60, 4, 400, seed=1), model="transe", rounds=2, dimension=8, negatives=8, seed=3).clients
    ['client-0']
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
    graphs = in_public_order(given, configuration)
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
    stand_in = stand_ins(configuration, canaries, graphs, directory.path if directory else None)
    return Run.of(Federation(graphs, configuration, directory, observer, vectors, stand_in, draft).run())


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
    configuration, graphs, canaries = reopen(directory, data)
    if threads is not None:
        configuration = configuration.updated(threads=threads)
    keep_canaries(directory.path, canaries, graphs)
    begun = any(directory.checkpoints.glob("*.safetensors"))
    vectors = None if begun else start_vectors(configuration, graphs)
    stand_in = stand_ins(configuration, canaries, graphs, directory.path)
    return Run.of(Federation(graphs, configuration, directory, observer, vectors, stand_in).run())


def open_run(path: str | PathLike[str], *, data: Data | None = None) -> Run:
    """A finished run, ready to evaluate, attack, audit, predict and export."""
    return Run.of(opened(path, data=data))


def price_of_attack(run: runs.Run, observer: Observer | None = None) -> dict[str, float]:
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
