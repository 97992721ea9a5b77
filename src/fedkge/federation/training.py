"""A whole training run on the embedded engine: rounds, validation, checkpoints, and going on after a crash."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedkge.configuration import Configuration
from fedkge.errors import ConfigurationError, DataError, RunError
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import Scores, Shared
from fedkge.federation.observer import Observer, Outlook
from fedkge.federation.run import Run, RunDirectory, client_names, shape_of
from fedkge.federation.server import RoundReport, Server, ServerPlan, weighted_mean
from fedkge.federation.storage import load_tensors, save_tensors
from fedkge.federation.strategies import make_strategy, pool
from fedkge.federation.transcript import Transcript, recorded_rounds
from fedkge.graph import Graph, Vocabulary
from fedkge.models.tables import Table

WATCHED = "both.realistic.mrr"
"""The metric that decides which round was best."""


@dataclass(slots=True)
class _Memory:
    """What the driver must not forget: evaluations so far, the best one, bytes moved, whether it has ended."""

    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -1.0
    best_round: int = 0
    stale: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class Federation:
    """Drives server and clients through the rounds of one run.

    Saved after every round: first each client (before its upload leaves), then the server. So a crash at any
    moment loses at most work that will be repeated with the same outcome.
    """

    def __init__(
        self,
        shards: Sequence[Graph],
        configuration: Configuration,
        directory: RunDirectory | None = None,
        observer: Observer | None = None,
        start: Mapping[Shared, Mapping[str, Table]] | None = None,
    ) -> None:
        self.configuration = configuration
        seed = _seed_of(configuration)
        self._directory = directory
        self._observer = observer or Observer()
        self._strategy = make_strategy(configuration.strategy)
        self._record = recorded_rounds(configuration.record, configuration.rounds)
        self._shards = tuple(shards)
        trained = (pool(self._shards),) if self._strategy.pooled else self._shards
        cores = configuration.threads or os.cpu_count() or 1
        folder = directory.checkpoints if directory else None
        self.clients = {
            name: Client(
                name,
                shard,
                ClientPlan(configuration, seed, number, self._strategy.shared, max(1, cores // len(trained))),
                folder,
                self._observer.advance,
            )
            for number, (name, shard) in enumerate(zip(client_names(len(trained)), trained, strict=True))
        }
        engine = EmbeddedEngine(self.clients, threads=min(cores, len(trained)))
        plan = ServerPlan(
            shape_of(configuration),
            seed,
            configuration.aggregation == "weighted",
            configuration.fraction,
            min(configuration.minimum_clients, len(trained)),
            configuration.largest_row_norm,
        )
        self.server = Server(engine, plan)
        self.entities = _union([shard.entities for shard in trained])
        self.relations = _union([shard.relations for shard in trained])
        self._memory = _Memory()
        if start:
            self._begin_from(start)
        self._resume()

    def run(self) -> Run:
        """All rounds that are left, then the final evaluation; returns the run."""
        with threadpool_limits(limits=1, user_api="blas"):
            if self._directory and self.server.round == 0:
                self._directory.write_vocabularies(self.entities, self.relations)
            self._observer.begin(self._outlook())
            while self.server.round < self.configuration.rounds and not self._out_of_patience():
                self._round()
            return self._finish()

    def _outlook(self) -> Outlook:
        options = self.configuration
        per_client = (
            options.local_steps * min(options.batch_size, len(client.shard.train))
            if options.local_steps
            else options.local_epochs * len(client.shard.train)
            for client in self.clients.values()
        )
        share = max(1, round(options.fraction * len(self.clients))) / len(self.clients)
        return Outlook(
            self.server.round + 1,
            options.rounds,
            int(share * sum(per_client)),
            tuple(self.clients),
            f"{next(iter(self.clients.values())).embedding.scorer.name}, {len(self.clients)} client(s)",
        )

    def _round(self) -> None:
        began = time.perf_counter()
        report = self.server.run_round()
        if self._directory and report.round in self._record:
            Transcript(self._directory.path).write(report)
        self._memory.bytes_up += sum(report.bytes_up.values())
        self._memory.bytes_down += sum(report.bytes_down.values())
        self._observer.round_done(_round_facts(report, time.perf_counter() - began))
        every = self.configuration.evaluate_every
        if every and report.round % every == 0:
            self._validate(report)
        self._save()

    def _validate(self, report: RoundReport) -> None:
        scores = self._validation_scores()
        if not scores:
            return
        record = {**self._record_of(scores, "valid"), "loss": report.loss}
        self._memory.history.append(record)
        if record[WATCHED] > self._memory.best:
            self._memory.best, self._memory.best_round, self._memory.stale = record[WATCHED], report.round, 0
            if self._directory:
                self._directory.write_model(self.tensors(), {"round": report.round}, best=True)
            else:
                self._best_in_memory = {name: table.copy() for name, table in self.tensors().items()}
        else:
            self._memory.stale += 1
        self._observer.evaluated(record)

    def _validation_scores(self) -> dict[str, Scores]:
        if not self._strategy.pooled:
            return self.server.evaluate("valid")
        evaluations = self._as_run(self.tensors()).evaluate(
            "valid",
            controls=False,
            sample=self.configuration.validation_triples or None,
            threads=self.configuration.threads,
        )
        return {name: Scores.of(evaluation) for name, evaluation in evaluations.items()}

    def _record_of(self, scores: Mapping[str, Scores], split: str) -> dict[str, Any]:
        return {
            "round": self.server.round,
            "split": split,
            **weighted_mean(scores),
            "bytes_up": self._memory.bytes_up,
            "bytes_down": self._memory.bytes_down,
            "clients": {
                name: {"triples": score.triples, **score.metrics, "controls": dict(score.controls)}
                for name, score in scores.items()
            },
        }

    def _out_of_patience(self) -> bool:
        return 0 < self.configuration.patience <= self._memory.stale

    def _finish(self) -> Run:
        tensors, facts = self._best_tensors()
        evaluations = self._as_run(tensors).evaluate("test", threads=self.configuration.threads)
        scores = {name: Scores.of(evaluation) for name, evaluation in evaluations.items()}
        history = list(self._memory.history)
        if scores:
            history.append({**self._record_of(scores, "test"), "round": facts["round"]})
            self._observer.end(history[-1])
        if self._directory:
            self._directory.write_metrics(history)
            self._directory.write_model(tensors, facts)
        return self._as_run(tensors, history)

    def _best_tensors(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        if self._memory.best_round == 0:
            return self.tensors(), {"round": self.server.round}
        if self._directory:
            return self._directory.read_model(best=True)
        return self._best_in_memory, {"round": self._memory.best_round}

    def _as_run(self, tensors: Mapping[str, NDArray[Any]], history: Sequence[Mapping[str, Any]] = ()) -> Run:
        path = self._directory.path if self._directory else None
        return Run(self.configuration, self._shards, self.entities, self.relations, tensors, history, path)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The model as it is now, in the form of model.safetensors."""
        tensors: dict[str, NDArray[Any]] = {}
        shared = self.server.tables
        if "entities" in shared:
            tensors["entities"] = shared["entities"]
        for name, shard in zip(client_names(len(self._shards)), self._shards, strict=True):
            own = [self.entities.index[entity] for entity in shard.entities]
            relation_ids = [self.relations.index[relation] for relation in shard.relations]
            tensors[f"own/{name}"] = np.array(own, dtype=np.int32)
            tensors[f"relation_ids/{name}"] = np.array(relation_ids, dtype=np.int32)
            if self._strategy.pooled:
                tensors[f"relations/{name}"] = self.clients["client-0"].embedding.tables.relations[relation_ids]
                continue
            tables = self.clients[name].with_rows(self.server.rows_for(name)).tables
            tensors[f"relations/{name}"] = tables.relations
            if "entities" not in shared:
                tensors[f"entities/{name}"] = tables.entities
        return tensors

    def _begin_from(self, start: Mapping[Shared, Mapping[str, Table]]) -> None:
        for kind, rows in start.items():
            for client in self.clients.values():
                if client.round:
                    continue
                names = client.shard.entities if kind == "entities" else client.shard.relations
                table = client.embedding.tables.entities if kind == "entities" else client.embedding.tables.relations
                _fill(table, names.index, rows, kind)
            if kind in self.server.tables:
                _fill(self.server.tables[kind], self.server.names[kind], rows, kind)

    def _save(self) -> None:
        if self._directory is None:
            return
        facts = {
            "round": self.server.round,
            "history": self._memory.history,
            "best": self._memory.best,
            "best_round": self._memory.best_round,
            "stale": self._memory.stale,
            "bytes_up": self._memory.bytes_up,
            "bytes_down": self._memory.bytes_down,
        }
        save_tensors(self._directory.checkpoints / "server.safetensors", self.server.tables, facts)
        self._directory.write_metrics(self._memory.history)

    def _resume(self) -> None:
        if self._directory is None or not (self._directory.checkpoints / "server.safetensors").exists():
            return
        path = self._directory.checkpoints / "server.safetensors"
        tensors, facts = load_tensors(path)
        for kind, table in self.server.tables.items():
            if kind not in tensors or tensors[kind].shape != table.shape:
                raise RunError(f"{path}: the checkpoint does not fit the clients' names; was the data changed?")
            table[...] = tensors[kind]
        self.server.round = facts.pop("round")
        self._memory = _Memory(**facts)
        behind = [name for name, client in self.clients.items() if client.round > self.server.round + 1]
        if behind:
            raise RunError(f"{path}: the server is at round {self.server.round}, ahead of it: {', '.join(behind)}")


def _seed_of(configuration: Configuration) -> int:
    if configuration.seed is None:
        raise ConfigurationError("a federation needs a seed: set one, or let `fedkge.train` draw one")
    return configuration.seed


def _round_facts(report: RoundReport, seconds: float) -> dict[str, Any]:
    return {
        "round": report.round,
        "loss": report.loss,
        "seconds": seconds,
        "refused": dict(report.refused),
        "bytes_up": dict(report.bytes_up),
        "bytes_down": dict(report.bytes_down),
    }


def _union(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    if len(vocabularies) == 1:
        return vocabularies[0]
    union: dict[str, None] = {}
    for vocabulary in vocabularies:
        union.update(dict.fromkeys(vocabulary))
    return Vocabulary(tuple(union))


def _fill(table: Table, places: Mapping[str, int], rows: Mapping[str, Table], kind: str) -> None:
    for name, row in rows.items():
        place = places.get(name)
        if place is None:
            continue
        if row.shape != table[place].shape:
            raise DataError(
                f"start vectors of {kind}: expected {table.shape[1]} numbers for {name!r}, got {row.shape[0]}; "
                "use the same model and dimension"
            )
        table[place] = row
