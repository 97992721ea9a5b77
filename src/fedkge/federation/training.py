"""A whole training run on the embedded engine: rounds, validation, checkpoints, and continuing after a crash."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.base.machine import available_cores
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.name_release import FOLDER, NameFiles
from fedkge.federation.aggregation import make_aggregation
from fedkge.federation.checkpoints import Checkpoint, Memory
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.drafts import Draft, released_shards, trained_shards
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import ClientLogic, RankingMetrics
from fedkge.federation.observer import Observer, Outlook
from fedkge.federation.records import evaluation_record, round_facts, with_left_out
from fedkge.federation.server import RoundReport, Server, ServerPlan
from fedkge.federation.start_rows import begin_from
from fedkge.graph import Graph, Vocabulary, no_triples
from fedkge.graph.shards import client_names
from fedkge.models.tables import Table
from fedkge.runs.account import continue_account
from fedkge.runs.directory import LAST_ROUNDS, RunDirectory
from fedkge.runs.round import Shared
from fedkge.runs.run import Run, shape_of
from fedkge.runs.strategies import strategy_of
from fedkge.runs.transcript import Transcript, recorded_rounds

WATCHED = "both.realistic.mrr"
"""The metric that decides which round was best."""


class Federation:
    """Runs the rounds of one run with its server and clients.

    After every round, first each client saves its state (before its upload leaves), then the server. So a crash loses
    only work that is repeated with the same result.
    """

    def __init__(
        self,
        shards: Sequence[Graph],
        configuration: Configuration,
        directory: RunDirectory | None = None,
        observer: Observer | None = None,
        start: Mapping[Shared, Mapping[str, Table]] | None = None,
        stand_in: Callable[[Client], ClientLogic] = lambda client: client,
        draft: Draft | None = None,
    ) -> None:
        self.configuration = configuration
        self._directory = directory
        self._checkpoint = Checkpoint(directory.checkpoints) if directory else None
        self._observer = observer or Observer()
        self._strategy = strategy_of(configuration)
        self._record = recorded_rounds(configuration.experiment.record, configuration.training.rounds)
        self._names = NameFiles(directory.path / FOLDER if directory else None)
        cores = configuration.training.threads or available_cores()
        # Opening repairs the ledger and the states after a crash, so no other process may write at the same time.
        with directory.locked() if directory and chosen_defence(configuration).keeps_ledger else nullcontext():
            self._ledger = self._open_ledger(draft, client_names(1 if self._strategy.pooled else len(shards)))
            self._shards = released_shards(shards, configuration, self._ledger, self._names)
            trained = trained_shards(self._shards, configuration)
            self.clients = self._make_clients(trained, max(1, cores // len(trained)))
        parties = {name: stand_in(client) for name, client in self.clients.items()}  # an adversary may not be honest
        allowed = (
            configuration.federation.minimum_clients is not None
            and configuration.federation.minimum_clients < len(trained)
        )
        engine = EmbeddedEngine(parties, _workers(cores, len(trained)), lose_clients=allowed)
        self.server = Server(engine, _server_plan(configuration, len(trained), self._strategy.pooled))
        self.entities = Vocabulary.union([shard.entities for shard in trained])
        self.relations = Vocabulary.union([shard.relations for shard in trained])
        self._ids = self._make_ids()
        self._memory = Memory()
        self._best: Mapping[str, NDArray[Any]] = {}
        if self._checkpoint and self._checkpoint.exists():
            self._memory = self._checkpoint.load(self.server, self.clients)
        elif start:
            begin_from(start, self.server, self.clients.values())

    def _open_ledger(self, draft: Draft | None, names: Sequence[str]) -> Ledger | None:
        """The run's ledger; the entries of `draft` are written there before they are used.

        A ledger with other clients than `names` is refused: the new clients would promise and spend a second budget on
        the same triples.
        """
        if not chosen_defence(self.configuration).keeps_ledger:
            return None
        ledger = Ledger.in_memory() if self._directory is None else continue_account(self._directory)
        if strangers := sorted(set(ledger.clients) - set(names)):
            raise PrivacyError(
                f"{ledger.path}: expected the budgets of {', '.join(names)}, got one of {', '.join(strangers)}: this "
                "is the run of a site in a federation, which `fedkge client` continues; nothing was released"
            )
        if draft is not None:
            self._names.adopt(draft.names)
            ledger.adopt(draft.ledger)
        return ledger

    def _make_clients(self, shards: Sequence[Graph], threads: int) -> dict[str, Client]:
        seed = _seed_of(self.configuration)
        folder = self._directory.checkpoints if self._directory else None
        clients: dict[str, Client] = {}
        for number, (name, shard) in enumerate(zip(client_names(len(shards)), shards, strict=True)):
            own = replace(shard, elsewhere=no_triples())  # what others hold is for the final judgement
            plan = ClientPlan(self.configuration, seed, number, self._strategy.shared, threads)
            if self._ledger is not None:
                plan = replace(plan, ledger=self._ledger)
            clients[name] = Client(name, own, plan, folder, self._observer.advance)
        return clients

    def _make_ids(self) -> dict[str, NDArray[np.int32]]:
        ids: dict[str, NDArray[np.int32]] = {}
        for name, shard in zip(client_names(len(self._shards)), self._shards, strict=True):
            for key, names, union in (
                ("own", shard.entities, self.entities),
                ("relation_ids", shard.relations, self.relations),
            ):
                ids[f"{key}/{name}"] = np.fromiter((union.index[row] for row in names), np.int32, len(names))
        return ids

    def run(self) -> Run:
        """Run the remaining rounds and the final evaluation; returns the run."""
        alone = self._directory.locked() if self._directory else nullcontext()
        with alone, threadpool_limits(limits=1, user_api="blas"):
            self._begin()
            if self._ledger is not None and self._ledger.notice:
                self._observer.noticed(self._ledger.notice)
            self._observer.begin(self._outlook())
            while self.server.round < self.configuration.training.rounds and not self._out_of_patience():
                if not self._round():
                    break
            return self._finish()

    def _begin(self) -> None:
        """Save round 0 on disk, so that a resumed run does not draw its start vectors again."""
        if self._directory is None or self._checkpoint is None or self._checkpoint.exists():
            return
        self._checkpoint.refuse_orphans(self.clients)
        self._directory.write_vocabularies(self.entities, self.relations)
        for client in self.clients.values():
            client.save()
        self._checkpoint.save(self.server, self._memory)

    def _outlook(self) -> Outlook:
        options = self.configuration
        per_client = (
            options.training.local_steps * min(options.training.batch_size, client.triples)
            if options.training.local_steps
            else options.training.local_epochs * client.triples
            for client in self.clients.values()
        )
        scorer = next(iter(self.clients.values())).embedding.scorer
        share = max(1, round(options.federation.fraction * len(self.clients))) / len(self.clients)
        return Outlook(
            self.server.round + 1,
            options.training.rounds,
            int(share * sum(per_client)),
            tuple(self.clients),
            f"{scorer.name}, {len(self.clients)} client{'s' if len(self.clients) > 1 else ''}",
        )

    def _round(self) -> bool:
        """Run one round; returns False if it did not take place because too few clients have budget left."""
        began = time.perf_counter()
        report = self.server.run_round()
        if not report.uploads:
            self._observer.round_done({**round_facts(report, time.perf_counter() - began), **self._tests()})
            return False
        if self._directory and report.round in self._record:
            results = {name: self.server.rows_for(name) for name in self.clients}
            private = {name: client.unshared() for name, client in self.clients.items()}
            Transcript(self._directory.path).write(report.messages(results, private))
            self._observer.recorded(self._as_run(self.tensors()), report.round)
        self._memory.note(report)
        self._observer.round_done({**round_facts(report, time.perf_counter() - began), **self._tests()})
        every = self.configuration.training.evaluate_every
        if every and report.round % every == 0:
            self._validate(report)
        self._save()
        return True

    def _validate(self, report: RoundReport) -> None:
        scores = self._validation_scores()
        if not scores:
            return
        record = {**self._record_of(scores, "valid"), "loss": report.loss}
        self._memory.history.append(record)
        if self._ledger is None:  # under a defence, the best round on private triples would reveal something about them
            self._keep_the_best(record)
        self._observer.evaluated(record)

    def _keep_the_best(self, record: Mapping[str, Any]) -> None:
        if record[WATCHED] > self._memory.best:
            self._memory.best, self._memory.best_round, self._memory.stale = record[WATCHED], record["round"], 0
            if self._directory:
                self._directory.write_model(self.tensors(), {"round": record["round"]}, best=True)
            else:
                self._best = {name: table.copy() for name, table in self.tensors().items()}
        else:
            self._memory.stale += 1

    def _validation_scores(self) -> dict[str, RankingMetrics]:
        """The clients' scores. Defended clients do not answer; the experiment evaluates them itself."""
        if not self._strategy.pooled and self._ledger is None:
            return self.server.evaluate("valid")
        evaluations = self._as_run(self.tensors()).evaluate(
            "valid",
            as_a_client=True,
            controls=False,
            sample=self.configuration.training.validation_triples or None,
            threads=self.configuration.training.threads,
        )
        return {name: RankingMetrics.of(evaluation) for name, evaluation in evaluations.items()}

    def _record_of(self, scores: Mapping[str, RankingMetrics], split: str) -> dict[str, Any]:
        facts = {"bytes_up": self._memory.bytes_up, "bytes_down": self._memory.bytes_down, **self._tests()}
        return evaluation_record(self.server.round, split, scores, facts)

    def _tests(self) -> dict[str, Any]:
        """The numbers of tests that each client made and passed, if its selection makes tests."""
        tests = {name: client.tests for name, client in self.clients.items() if client.tests}
        return {"tests": tests} if tests else {}

    def _out_of_patience(self) -> bool:
        return 0 < self.configuration.training.patience <= self._memory.stale

    def _finish(self) -> Run:
        tensors, facts = self._best_tensors()
        evaluations = self._as_run(tensors).evaluate("test", threads=self.configuration.training.threads)
        scores = {name: RankingMetrics.of(evaluation) for name, evaluation in evaluations.items()}
        history = list(self._memory.history)
        if scores:
            record = {**self._record_of(scores, "test"), "round": facts["round"]}
            history.append(with_left_out(record, evaluations))
            self._observer.end(history[-1])
        if self._directory:
            self._directory.write_metrics(history)
            self._directory.write_model(tensors, facts)
        return self._as_run(tensors, history)

    def _best_tensors(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        if self._memory.best_round == 0:
            last = {} if self._ledger is None else {LAST_ROUNDS: dict(sorted(self._memory.delivered.items()))}
            return self.tensors(), {"round": self.server.round, **last}
        if self._directory:
            return self._directory.read_model(best=True)
        return self._best, {"round": self._memory.best_round}

    def _as_run(self, tensors: Mapping[str, NDArray[Any]], history: Sequence[Mapping[str, Any]] = ()) -> Run:
        path = self._directory.path if self._directory else None
        return Run(
            self.configuration, self._shards, self.entities, self.relations, tensors, history, path, self._ledger
        )

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The model as it is now, in the form of model.safetensors."""
        tensors: dict[str, NDArray[Any]] = dict(self._ids)
        shared = self.server.tables
        if "entities" in shared:
            tensors["entities"] = shared["entities"]
        for name in client_names(len(self._shards)):
            if self._strategy.pooled:
                relations = self.clients["client-0"].embedding.tables.relations
                tensors[f"relations/{name}"] = relations[self._ids[f"relation_ids/{name}"]]
                continue
            tables = self.clients[name].embedding.tables
            places = self.server.owners.get("relations")
            tensors[f"relations/{name}"] = shared["relations"][places[name]] if places else tables.relations
            if "entities" not in shared:
                tensors[f"entities/{name}"] = tables.entities
            released = self.clients[name].released
            arrays = released.model_arrays() if released else {}
            tensors |= {f"counts/{name}/{key}": array for key, array in arrays.items()}
        return tensors

    def _save(self) -> None:
        if self._directory and self._checkpoint:
            self._checkpoint.save(self.server, self._memory)
            self._directory.write_metrics(self._memory.history)


def _seed_of(configuration: Configuration) -> int:
    if configuration.experiment.seed is None:
        raise ConfigurationError("a federation needs a seed: set one, or let `fedkge.train` draw one")
    return configuration.experiment.seed


def _workers(cores: int, clients: int) -> int:
    """The number of threads for the clients: twice the cores if the run uses all cores of the machine. Three clients
    then share two cores to the end of the round. With two at a time, a core would be idle while the third trains.
    """
    everything = cores > 1 and cores >= available_cores()
    return min(2 * cores if everything else cores, clients)


def _server_plan(configuration: Configuration, clients: int, pooled: bool) -> ServerPlan:
    minimum = 1 if pooled else configuration.federation.least_clients
    if minimum > clients:
        raise ConfigurationError(f"minimum-clients: expected at most the {clients} clients there are, got {minimum}")
    return ServerPlan(
        shape_of(configuration),
        _seed_of(configuration),
        make_aggregation(configuration.federation.aggregation),
        configuration.federation.fraction,
        minimum,
        configuration.federation.largest_row_norm,
    )
