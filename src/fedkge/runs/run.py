"""A run: a trained federation, on disk and in memory.

`model.safetensors` holds, for each client c: `own/c` (its rows in the entity table), `relations/c`,
`relation_ids/c` (their places in relations.txt), and one `entities` table over entities.txt. If clients share
no entities (isolated, FedR), each has its own table, `entities/c`. A defence that counts adds `counts/c/...`, the
noisy counts that belong to the client's model (`fedkge.defences.release`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.release import Release
from fedkge.evaluation import Evaluations, evaluate
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.shards import client_names
from fedkge.graph.summary import leaked
from fedkge.models import Embedding, ModelShape, Tables, make_scorer
from fedkge.models.embedding import Prior
from fedkge.models.scorer import Scorer
from fedkge.store.durable_files import Tensors


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished (or loaded) run.

    `metrics` are the lines of metrics.jsonl; the last one is the final evaluation.
    """

    configuration: Configuration
    shards: Sequence[Graph]
    entities: Vocabulary
    relations: Vocabulary
    tensors: Tensors
    metrics: Sequence[Mapping[str, Any]] = ()
    directory: Path | None = None
    ledger: Ledger | None = None
    """The promise and the spent budget of each client; None without a defence."""

    def __repr__(self) -> str:
        options, clients = self.configuration, len(self.shards)
        rounds, defence = options.training.rounds, options.privacy.defence
        parts = [
            f"{scorer_of(options).name}, {clients} client{'s' if clients > 1 else ''}, {options.federation.strategy}, "
            f"{rounds} round{'s' if rounds > 1 else ''}",
            "no defence" if self.ledger is None else f"defence {defence}, epsilon {options.privacy.epsilon}",
            "in memory" if self.directory is None else f"in {self.directory}",
        ]
        return f"Run of {options.data.source}: {'; '.join(parts)}"

    def epsilon(self) -> dict[str, float]:
        """The epsilon that each client has spent, at its delta; infinite without a defence."""
        if self.ledger is None:
            return dict.fromkeys(self.clients, math.inf)
        return {client: self.ledger.spent(client) for client in self.ledger.clients}

    @property
    def clients(self) -> list[str]:
        """The clients' names."""
        return client_names(len(self.shards))

    def embedding(self, client: str = "") -> Embedding:
        """The model of one client (the first by default), over its own entities and relations."""
        client = client or self.clients[0]
        if client not in self.clients:
            raise ConfigurationError(f"no client {client!r} in this run: expected one of {', '.join(self.clients)}")
        own = self.tensors[f"own/{client}"]
        table = self.tensors.get(f"entities/{client}")
        entities = self.tensors["entities"][own] if table is None else table
        tables = Tables(entities, self.tensors[f"relations/{client}"])
        return Embedding(scorer_of(self.configuration), tables, self.configuration.model.margin, self.prior(client))

    def released(self, client: str) -> Release | None:
        """What the client's model holds of what its defence released once; None where it released nothing."""
        start = f"counts/{client}/"
        arrays = {name.removeprefix(start): array for name, array in self.tensors.items() if name.startswith(start)}
        return chosen_defence(self.configuration).read_release(arrays) if arrays else None

    def prior(self, client: str) -> Prior | None:
        """What the client's release adds to its scores; None where it released nothing once."""
        released = self.released(client)
        return chosen_defence(self.configuration).prior(self.configuration, released) if released else None

    def evaluate(
        self,
        split: str = "test",
        *,
        as_a_client: bool = False,
        controls: bool = True,
        seen_only: bool = False,
        keep_leaked: bool | None = None,
        sample: int | None = None,
        threads: int | None = None,
    ) -> Evaluations:
        """Rank every client's held-out triples on both sides, beside the popularity controls.

        The filter contains all true triples among the client's names, also those of other clients: a model that
        learned one of them is not wrong. `as_a_client` filters by the client's own triples alone, as a client itself
        would. `seen_only` leaves out triples with a name that never occurs in the client's training triples. Triples
        that any client trains on are left out, unless `keep_leaked` or the configuration says otherwise.
        """
        keep = self.configuration.data.keep_leaked if keep_leaked is None else keep_leaked
        return Evaluations(
            {
                name: evaluate(
                    self.embedding(name),
                    shard,
                    split,
                    known=shard.all_triples if as_a_client else shard.true_triples,
                    controls=controls,
                    seen_only=seen_only,
                    keep_leaked=keep,
                    sample=sample,
                    threads=threads or None,
                )
                for name, shard in zip(self.clients, self.shards, strict=True)
                if (len(shard.split(split)) if keep else not leaked(shard, shard.split(split)).all())
            }
        )


def shape_of(configuration: Configuration) -> ModelShape:
    """The model shape of a configuration."""
    return ModelShape(configuration.model.dimension, configuration.model.margin, configuration.model.norm)


def scorer_of(configuration: Configuration) -> Scorer:
    """The scorer of a configuration.

    >>> scorer_of(Configuration.of(model="complex")).name
    'ComplEx'
    """
    return make_scorer(configuration.model.name, shape_of(configuration))
