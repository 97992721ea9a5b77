"""Views of a recorded run: each adversary's part of the transcript, and nothing more."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.view import Adversary, Sight, View, partial_table
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.experiments.targets import run_ids
from fedkge.federation.messages import Rows
from fedkge.graph import Graph, Triples
from fedkge.models import make_scorer
from fedkge.models.tables import Table
from fedkge.runs.run import Run, shape_of
from fedkge.runs.transcript import Messages, Transcript
from fedkge.runs.transcript import View as TranscriptView

ROUNDS_IN_MEMORY = 8


def shard_of(run: Run, client: str) -> Graph:
    """One client's graph, or an error that lists the clients."""
    if client not in run.clients:
        raise ConfigurationError(f"no client {client!r} in this run: expected one of {', '.join(run.clients)}")
    return run.shards[run.clients.index(client)]


def recorded_view(run: Run, adversary: Adversary, victim: str, client: str, auxiliary: Triples | None = None) -> View:
    """The view of the server, of `client`, or of both together, on `victim`."""
    if run.directory is None or run.configuration.federation.strategy != "fede":
        raise ConfigurationError("attacks need a run with a directory and strategy fede, where entities are shared")
    if victim == client and adversary != "server":
        raise ConfigurationError(f"the adversary and the victim are both {victim}: choose another --adversary")
    own = shard_of(run, client) if adversary != "server" else None
    shard_of(run, victim)
    with_server = adversary != "client"
    holders = [] if adversary == "server" else [client]
    seen = Transcript(run.directory).view(server=with_server, clients=holders)
    if not Transcript(run.directory).rounds():
        raise RunError(f"{run.directory}: nothing was recorded; train with --record every:5 (or all)")
    if not seen.rounds():
        raise RunError(f"{run.directory}: {client} took part in no recorded round; train with --record all")
    options = run.configuration
    return View(
        adversary=adversary,
        victim=victim,
        scorer=make_scorer(options.model.name, shape_of(options)),
        margin=options.model.margin,
        clients=len(run.clients),
        rounds=tuple(seen.rounds()),
        look=_Look(run, seen, victim, client if own else None),
        owners=_owners(run) if with_server else None,
        own_triples=run_ids(own.train, own, run.entities, run.relations) if own else None,
        auxiliary=auxiliary if with_server else None,
        names=run.entities.names if with_server else _own_names(run, client),
    )


def _owners(run: Run) -> NDArray[np.int64]:
    places = np.concatenate([run.tensors[f"own/{name}"] for name in run.clients])
    return np.bincount(places, minlength=len(run.entities))


def _own_names(run: Run, client: str) -> list[str]:
    names = [""] * len(run.entities)
    for place in run.tensors[f"own/{client}"].tolist():
        names[place] = run.entities[place]
    return names


class _Look:
    """Places the rows that a transcript's view holds into tables numbered as in the run."""

    def __init__(self, run: Run, seen: TranscriptView, victim: str, client: str | None) -> None:
        holders = {client} if not seen.server else {victim, client} - {None}
        self._places = {name: run.tensors[f"own/{name}"] for name in holders}
        self._relation_ids = run.tensors[f"relation_ids/{client}"] if client else None
        self._sizes = len(run.entities), len(run.relations)
        self._seen, self._victim, self._client = seen, victim, client
        self._cached = lru_cache(maxsize=ROUNDS_IN_MEMORY)(self._look)

    def __call__(self, round_number: int) -> Sight:
        return self._cached(round_number)

    def _look(self, round_number: int) -> Sight:
        seen = self._seen.see(round_number)
        source = self._victim if self._seen.server else self._client
        relations = None
        if self._client and self._relation_ids is not None:
            rows = seen.private[self._client]["relations"]
            relations = partial_table(rows, self._relation_ids, self._sizes[1])
        return Sight(
            round_number,
            sent=self._table(seen.broadcasts, source),
            upload=self._table(seen.uploads, self._victim),
            result=self._table(seen.results, source),
            own_upload=self._table(seen.uploads, self._client),
            relations=relations,
        )

    def _table(self, messages: Messages, client: str | None) -> Table | None:
        rows: Rows | None = messages.get(client, {}).get("entities") if client else None
        if rows is None or client is None:
            return None
        return partial_table(rows, self._places[client], self._sizes[0])
