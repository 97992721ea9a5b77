"""A client: its own graph, its own relations, and the answers that it gives to the server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.configuration import Configuration
from fedkge.errors import RunError
from fedkge.evaluation import evaluate
from fedkge.federation.messages import (
    Evaluate,
    Fit,
    Greeting,
    Hello,
    Reply,
    Request,
    Rows,
    Scores,
    Shared,
    Upload,
)
from fedkge.federation.randomness import client_generator
from fedkge.federation.storage import load_tensors, save_tensors
from fedkge.graph import Graph
from fedkge.models import Embedding, ModelShape, Tables, initial_tables, make_scorer
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions, batches

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """What a client must know to take part: the configuration, the seed, its number, and what is shared."""

    configuration: Configuration
    seed: int
    number: int
    shared: tuple[Shared, ...]
    threads: int = 1


@dataclass(slots=True)
class _State:
    """How far the client is: the last round that it trained, and the digest of the rows that this began from."""

    round: int = 0
    began_from: str = ""
    loss: float = float("nan")


class Client:
    """One organisation. It answers requests; nobody reaches into it.

    With a `folder`, its state is saved after each round, before the upload leaves. A round that it has already
    trained is not trained again: the same request gets the saved upload.
    """

    def __init__(
        self, name: str, shard: Graph, plan: ClientPlan, folder: Path | None = None, advance: Advance = lambda _: None
    ) -> None:
        self.name = name
        self.shard = shard
        self._plan = plan
        self._advance = advance
        self._path = folder / f"{name}.safetensors" if folder else None
        self._state = _State()
        options = plan.configuration
        shape = ModelShape(options.dimension, options.margin, options.norm)
        scorer = make_scorer(options.model, shape)
        generator = client_generator(plan.seed, plan.number, 0)
        tables = initial_tables(scorer, shape, len(shard.entities), len(shard.relations), generator)
        self.embedding = Embedding(scorer, tables, options.margin)
        known = shard.train if options.filter_negatives else None
        negatives = Negatives(
            len(shard.entities), options.negatives, options.negative_group, options.corrupt, known=known
        )
        training = TrainingOptions(
            options.batch_size,
            options.learning_rate,
            options.optimiser,
            options.temperature,
            options.regularisation,
        )
        self._trainer = Trainer(self.embedding, negatives, training)
        if self._path and self._path.exists():
            self._load()

    @property
    def round(self) -> int:
        """The last round that this client trained; 0 before the first."""
        return self._state.round

    def handle(self, request: Request) -> Reply:
        """Answer one request of the server."""
        if isinstance(request, Hello):
            return self._greet()
        if isinstance(request, Fit):
            return self._fit(request)
        return self._evaluate(request)

    def _tables(self) -> dict[Shared, NDArray[Any]]:
        return {"entities": self.embedding.tables.entities, "relations": self.embedding.tables.relations}

    def _greet(self) -> Greeting:
        names = {"entities": self.shard.entities.names, "relations": self.shard.relations.names}
        tables, shared = self._tables(), self._plan.shared
        return Greeting(
            names={kind: names[kind] for kind in shared},
            widths={kind: tables[kind].shape[1] for kind in shared},
            triples=len(self.shard.train),
        )

    def _fit(self, request: Fit) -> Upload:
        digest = _digest(request.rows)
        if request.round != self._state.round or request.round == 0:
            self._train(request)
            self._state.round, self._state.began_from = request.round, digest
            self._save()
        elif digest != self._state.began_from:
            raise RunError(
                f"{self.name} trained round {request.round} from other rows than it is now asked to begin from: "
                "server and client states do not belong together"
            )
        rows = {kind: self._tables()[kind].copy() for kind in self._plan.shared}
        return Upload(request.round, rows, len(self.shard.train), self._state.loss)

    def _train(self, request: Fit) -> None:
        for kind, table in self._tables().items():
            if kind in request.rows:
                table[...] = request.rows[kind]
        options = self._plan.configuration
        if options.optimiser_state == "reset":
            self._trainer.reset_optimisers()
        generator = client_generator(self._plan.seed, self._plan.number, request.round)
        if options.local_steps:
            self._state.loss = self._train_steps(options.local_steps, generator)
            return
        for _ in range(options.local_epochs):
            self._state.loss = self._trainer.epoch(self.shard.train, generator, self._advance)

    def _train_steps(self, steps: int, generator: np.random.Generator) -> float:
        losses: list[float] = []
        while len(losses) < steps:
            for batch in batches(self.shard.train, self._plan.configuration.batch_size, generator):
                losses.append(self._trainer.step(batch, generator))
                self._advance(len(batch))
                if len(losses) == steps:
                    break
        return float(np.mean(losses))

    def _evaluate(self, request: Evaluate) -> Scores:
        if len(self.shard.split(request.split)) == 0:
            return Scores(triples=0)
        limit = self._plan.configuration.validation_triples if request.split == "valid" else 0
        result = evaluate(
            self.with_rows(request.rows),
            self.shard,
            request.split,
            controls=request.split == "test",
            sample=limit or None,
            threads=self._plan.threads,
        )
        return Scores.of(result)

    def with_rows(self, rows: Mapping[Shared, Rows]) -> Embedding:
        """The client's model with some tables replaced by what the server sent."""
        tables = {**self._tables(), **rows}
        return Embedding(self.embedding.scorer, Tables(tables["entities"], tables["relations"]), self.embedding.margin)

    def _optimiser_states(self) -> dict[str, NDArray[Any]]:
        if self._plan.configuration.optimiser_state == "reset":
            return {}
        return {
            f"optimiser/{table}/{key}": value
            for table, optimiser in (
                ("entities", self._trainer.entity_optimiser),
                ("relations", self._trainer.relation_optimiser),
            )
            for key, value in optimiser.state().items()
        }

    def _save(self) -> None:
        if self._path is None:
            return
        tensors = {f"tables/{kind}": table for kind, table in self._tables().items()} | self._optimiser_states()
        facts = {
            "round": self._state.round,
            "began_from": self._state.began_from,
            "loss": self._state.loss,
            "steps": self._trainer.steps,
        }
        save_tensors(self._path, tensors, facts)

    def _load(self) -> None:
        assert self._path is not None  # noqa: S101 - for the type checker
        tensors, facts = load_tensors(self._path)
        places = {f"tables/{kind}": table for kind, table in self._tables().items()} | self._optimiser_states()
        for name, place in places.items():
            if name not in tensors or tensors[name].shape != place.shape:
                raise RunError(f"{self._path}: the checkpoint of {self.name} does not fit its graph ({name})")
            place[...] = tensors[name]
        self._state = _State(facts["round"], facts["began_from"], facts["loss"])
        self._trainer.steps = facts["steps"]


def _digest(rows: Mapping[Shared, Rows]) -> str:
    digest = hashlib.sha256()
    for kind in sorted(rows):
        digest.update(kind.encode())
        digest.update(np.ascontiguousarray(rows[kind]).data)
    return digest.hexdigest()
