"""A copy of a recorded federation at the end of one round, with one client free for an adversary.

What happens in a fork leaves the recorded run untouched. The fork itself plays the honest parties, from the recorded
uploads and private tables; the adversary only submits rows and receives rows, like any client.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import ConfigurationError
from fedkge.defences import chosen_defence
from fedkge.defences.release import Release
from fedkge.federation.aggregation import make_aggregation
from fedkge.federation.claimed_weights import believable_weights
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Fit, Upload
from fedkge.models import Embedding, Tables
from fedkge.models.tables import Table
from fedkge.runs.directory import CHECKPOINTS
from fedkge.runs.round import Parties, Rows
from fedkge.runs.run import Run
from fedkge.runs.state_file import saved_release
from fedkge.runs.strategies import strategy_of
from fedkge.runs.transcript import Transcript
from fedkge.runs.view import partial_table


class ForkedClient:
    """The client of `adversary` at the moment when round `round_number` collects its uploads.

    Optimiser state is not part of the record: honest clients begin with a fresh one, as FedE does every round. All of
    them take part in every round after the recorded one.
    """

    def __init__(self, run: Run, round_number: int, adversary: str) -> None:
        if run.directory is None or not strategy_of(run.configuration).exchanges_entities:
            raise ConfigurationError("a fork needs the transcript of a run with strategy fede and --out")
        if adversary not in run.clients:
            raise ConfigurationError(f"no client {adversary!r} in this run: {', '.join(run.clients)}")
        self._run, self._adversary = run, adversary
        self._aggregation = make_aggregation(run.configuration.federation.aggregation)
        self._recorded = self._round = round_number
        record = Transcript(run.directory).read(round_number, Parties.of(*run.clients, server=True))
        self._places = {name: run.tensors[f"own/{name}"].astype(np.int64) for name in run.clients}
        self._uploads: dict[str, Rows] = {name: rows["entities"] for name, rows in record.uploads.items()}
        if adversary not in self._uploads:
            raise ConfigurationError(f"{adversary} sent no upload in round {round_number}: fork a round that it was in")
        self._private = record.private
        self._honest: dict[str, Client] = {}
        size, width = len(run.entities), self._uploads[adversary].shape[1]
        self._table: Rows = np.zeros((size, width), dtype=np.float32)
        for name, rows in record.results.items():
            self._table[self._places[name]] = rows["entities"]

    @property
    def upload(self) -> Table:
        """What the adversary's client honestly uploaded in the recorded round."""
        return self._own(self._uploads[self._adversary])

    @property
    def embedding(self) -> Embedding:
        """The adversary's scorer and its own relations, numbered as in the run."""
        model = self._run.embedding(self._adversary)
        rows = self._private[self._adversary]["relations"]
        places = self._run.tensors[f"relation_ids/{self._adversary}"]
        relations = partial_table(rows, places, len(self._run.relations))
        return Embedding(model.scorer, Tables(self.upload, relations), model.margin)

    def submit(self, rows: Table) -> Table:
        """End the round with this upload; the honest clients train when the next round ends."""
        uploads = {**self._honest_uploads(), self._adversary: rows[self._places[self._adversary]].astype(np.float32)}
        weights = believable_weights({name: self._claim(name) for name in self._run.clients}, [self._places])
        self._table = self._aggregation.aggregate(self._table, uploads, self._places, weights)
        self._round += 1
        return self._own(self._table[self._places[self._adversary]])

    def _claim(self, name: str) -> int:
        """How many triples the client says it has: the noisy number under a defence."""
        if self._run.ledger is not None:
            return self._run.ledger.promises[name].plan.triples
        return len(self._run.shards[self._run.clients.index(name)].train)

    def _own(self, rows: Rows) -> Table:
        return partial_table(rows, self._places[self._adversary], len(self._run.entities))

    def _honest_uploads(self) -> dict[str, Rows]:
        names = [name for name in self._run.clients if name != self._adversary]
        if not self._honest:
            self._honest = {name: self._revive(name) for name in names}
            return {name: self._uploads[name] for name in names if name in self._uploads}
        uploads: dict[str, Rows] = {}
        for name in names:
            reply = self._honest[name].handle(Fit(self._round, {"entities": self._table[self._places[name]]}))
            if isinstance(reply, Upload):
                uploads[name] = reply.rows["entities"]
        return uploads

    def _released(self, name: str) -> Release | None:
        """What the real client drew once, so that it draws it no second time."""
        directory = self._run.directory
        path = directory / CHECKPOINTS / f"{name}.safetensors" if directory else None
        if not path or not path.exists() or self._run.ledger is None:
            return None
        return saved_release(path, chosen_defence(self._run.configuration))

    def _revive(self, name: str) -> Client:
        options = self._run.configuration.updated(optimiser_state="reset")
        number = self._run.clients.index(name)
        plan = ClientPlan(options, options.experiment.seed or 0, number, ("entities",))
        if self._run.ledger is not None:  # as the real client defends itself; what a fork spends nobody sees
            ledger = Ledger.in_memory()
            ledger.promise(self._run.ledger.promises[name])
            plan = replace(plan, ledger=ledger)
        client = Client(name, self._run.shards[number], plan)
        steps = self._recorded * options.training.steps_per_round(client.triples)
        client.continue_from(self._private[name]["relations"], steps, self._recorded, self._released(name))
        return client
