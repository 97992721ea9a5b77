"""Views of a recorded run: each adversary's part of the transcript, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.experiments.targets import run_ids
from fedkge.graph import Graph, Triples
from fedkge.runs.round import Parties, Round
from fedkge.runs.run import Run, scorer_of
from fedkge.runs.strategies import strategy_of
from fedkge.runs.transcript import Transcript
from fedkge.runs.view import Adversary, Numbering, View

ROUNDS_IN_MEMORY = 8


def shard_of(run: Run, client: str) -> Graph:
    """One client's graph, or an error that lists the clients."""
    if client not in run.clients:
        raise ConfigurationError(f"no client {client!r} in this run: expected one of {', '.join(run.clients)}")
    return run.shards[run.clients.index(client)]


def recorded_view(run: Run, adversary: Adversary, victim: str, client: str, auxiliary: Triples | None = None) -> View:
    """The view of the server, of `client`, or of both together, on `victim`."""
    if run.directory is None or not strategy_of(run.configuration).exchanges_entities:
        raise ConfigurationError("attacks need a run with a directory and strategy fede, where entities are shared")
    if victim == client and adversary != "server":
        raise ConfigurationError(f"the adversary and the victim are both {victim}: choose another --adversary")
    own = shard_of(run, client) if adversary != "server" else None
    shard_of(run, victim)
    parties = Parties.of(*([client] if own else []), server=adversary != "client")
    transcript = Transcript(run.directory)
    if not transcript.rounds():
        raise RunError(f"{run.directory}: nothing was recorded; train with --record every:5 (or all)")
    if not transcript.rounds(parties):
        raise RunError(f"{run.directory}: {client} took part in no recorded round; train with --record all")
    options = run.configuration
    return View(
        adversary=adversary,
        victim=victim,
        client=client if own else None,
        scorer=scorer_of(options),
        margin=options.model.margin,
        clients=len(run.clients),
        rounds=tuple(transcript.rounds(parties)),
        look=_reader(transcript, parties),
        numbering=_numbering(run, {*parties.clients, *([victim] if parties.server else [])}, parties.clients),
        owners=_owners(run) if parties.server else None,
        own_triples=run_ids(own.train, own, run.entities, run.relations) if own else None,
        auxiliary=auxiliary if parties.server else None,
        names=run.entities.names if parties.server else _own_names(run, client),
    )


def _reader(transcript: Transcript, parties: Parties) -> Callable[[int], Round]:
    """What the parties saw of a round; the newest ones stay in memory."""

    @lru_cache(maxsize=ROUNDS_IN_MEMORY)
    def look(number: int) -> Round:
        return transcript.read(number, parties)

    return look


def _numbering(run: Run, watched: set[str], own: frozenset[str]) -> Numbering:
    return Numbering(
        len(run.entities),
        len(run.relations),
        {name: run.tensors[f"own/{name}"] for name in watched},
        {name: run.tensors[f"relation_ids/{name}"] for name in own},
    )


def _owners(run: Run) -> NDArray[np.int64]:
    places = np.concatenate([run.tensors[f"own/{name}"] for name in run.clients])
    return np.bincount(places, minlength=len(run.entities))


def _own_names(run: Run, client: str) -> list[str]:
    names = [""] * len(run.entities)
    for place in run.tensors[f"own/{client}"].tolist():
        names[place] = run.entities[place]
    return names
