"""Audit a run, or train a federation with canaries in it and audit that."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Unpack

from fedkge.api.audits import Audit, Look, audit_run, audited, check_limit, check_strategy, passive_attacks
from fedkge.api.opening import RunLike, shards_of
from fedkge.api.options import TrainOptions
from fedkge.api.run import Run
from fedkge.api.training import start
from fedkge.audit.bound import CONFIDENCE
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.experiments.experiment import Progress
from fedkge.federation.observer import Observer
from fedkge.graph import Graph
from fedkge.graph.split import Shards


def audit(
    run: RunLike | Graph | Shards,
    *,
    attacks: Sequence[str] = (),
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
    progress: Progress = lambda *_: None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    **options: Unpack[TrainOptions],
) -> Audit:
    """Audit a run that has canaries; or, given a graph or shards, train a federation with canaries and audit that.

    A new federation needs `out`, and takes the options of `train`. `Audit.bound` is the least epsilon that the attacks
    prove; the run's own claim stands beside it.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> shards = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1), clients=2, seed=7)
    >>> with TemporaryDirectory() as folder:
    ...     found = fk.audit(shards, out=f"{folder}/run", canaries=40, rounds=2, dimension=8, negatives=8)
    >>> found.claim, found.contradicted
    (None, False)
    """
    look: Look = {"attacks": attacks, "guesses": guesses, "confidence": confidence}
    if not isinstance(run, Graph | Shards):
        if options or out is not None or overwrite:
            raise ConfigurationError("audit: expected a graph or shards to train on, got a run and training options")
        return audit_run(run, progress=progress, **look)
    if out is None:
        raise ConfigurationError("audit: expected out=DIRECTORY for the federation that is trained, got none")
    clients = {"clients": len(run)} if isinstance(run, Shards) else {}
    configuration = audited({"data": run.name, **clients, **options})
    shards = shards_of(run, configuration).graphs
    trained = train_for_audit(configuration, shards, out, overwrite=overwrite, observer=observer, **look)
    return audit_run(trained, progress=progress, **look)


def train_for_audit(
    configuration: Configuration,
    shards: Sequence[Graph] | None,
    out: str | PathLike[str],
    limit: float | None = None,
    *,
    attacks: Sequence[str] = (),
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Train what `audited` describes, after a check that the audit could show something."""
    names = passive_attacks(attacks)
    check_strategy(configuration, names)
    check_limit(configuration, limit, names, guesses, confidence)
    return start(configuration, shards, out, overwrite=overwrite, observer=observer)
