"""A client: its own graph, its own relations, and its answers to the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError, RunError
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.defence import Advance, ClientDefence, Rounds
from fedkge.defences.planning import client_defence
from fedkge.defences.release import Release
from fedkge.evaluation import evaluate
from fedkge.federation.messages import (
    Evaluate,
    Fit,
    Goodbye,
    Greeting,
    Hello,
    RankingMetrics,
    Reply,
    Request,
    Share,
    Sharing,
    Upload,
)
from fedkge.federation.shared_tables import SharedTables
from fedkge.graph import Graph
from fedkge.graph.summary import leaked
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models import Embedding, initial_tables
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions
from fedkge.runs.round import Rows, Shared
from fedkge.runs.run import scorer_of, shape_of
from fedkge.runs.state_file import RELEASED, State, StateFile, release_in
from fedkge.store.durable_files import fingerprint
from fedkge.store.randomness import client_generator


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """Everything that a client needs to take part. Without `defence`, the client uses the defence of the configuration,
    calibrated and promised in the ledger.
    """

    configuration: Configuration
    seed: int
    number: int
    shared: tuple[Shared, ...]
    threads: int = 1
    defence: ClientDefence | None = None
    ledger: Ledger = field(default_factory=Ledger.in_memory)


@dataclass(frozen=True, slots=True)
class _State:
    """The client's progress: the last round that it trained, and the digest of the rows at the start of that round."""

    round: int = 0
    began_from: str = ""
    loss: float | None = 0.0
    served: int = 0
    """Rounds trained so far. It determines the noise of the next round; the server's round number does not."""
    validations: tuple[float, ...] = ()
    """MRRs on public triples, for a noise schedule that needs them."""


_STATE = TypeAdapter(_State)


class Client:
    """One organisation. It answers requests; other code does not change its state.

    With a `folder`, the client saves its state after each round, before the upload leaves. It never trains a round
    twice: the same request gets the saved upload. A failed round does not change the state.
    Under a defence, the ledger charges a round before training and records its release before the upload leaves.
    """

    def __init__(
        self, name: str, shard: Graph, plan: ClientPlan, folder: Path | None = None, advance: Advance = lambda _: None
    ) -> None:
        self.name = name
        self.shard = shard
        self._plan = plan
        self._advance = advance
        self._defence = plan.defence or client_defence(plan.configuration, name, shard, plan.ledger, plan.number)
        self._ledger = plan.ledger if chosen_defence(plan.configuration).keeps_ledger else None
        path = folder / f"{name}.safetensors" if folder else None
        self._file = StateFile(path, name, self._ledger)
        self._state = _State()
        self._training = 0
        """The round in training, or a round that failed and could not be undone; otherwise 0."""
        options = plan.configuration
        shape, scorer = shape_of(options), scorer_of(options)
        generator = client_generator(plan.seed, plan.number, 0)
        tables = initial_tables(scorer, shape, len(shard.entities), len(shard.relations), generator)
        self.embedding = Embedding(scorer, tables, options.model.margin)
        self._tables = SharedTables(name, self.embedding, plan.shared)
        self._trainer, self._rounds = self._new_trainer()
        kept = self._file.load()
        if kept:
            self._take(*kept)

    def _new_trainer(self) -> tuple[Trainer, Rounds]:
        options = self._plan.configuration
        known = self.shard.train if options.training.filter_negatives else None
        negatives = Negatives(
            len(self.shard.entities),
            options.training.negatives,
            options.training.negative_group,
            options.training.corrupt,
            known=known,
        )
        training = TrainingOptions(
            options.training.batch_size,
            options.training.learning_rate,
            options.training.optimiser,
            options.training.temperature,
            options.training.regularisation,
        )
        trainer = Trainer(self.embedding, negatives, training)
        return trainer, self._defence.rounds(trainer, self.shard)

    @property
    def round(self) -> int:
        """The last round that this client trained; 0 before the first."""
        return self._state.round

    @property
    def tests(self) -> dict[str, int]:
        """The propose-test-release tests made and passed so far; empty if the defence makes none."""
        return self._rounds.tests

    @property
    def released(self) -> Release | None:
        """The one-time release of this client's defence, or None before it; no message carries it."""
        return self._rounds.released

    def handle(self, request: Request) -> Reply:
        """Answer one request of the server."""
        if self._training:
            raise RunError(
                f"{self.name}: round {self._training} failed and could not be undone; start this client again"
            )
        if isinstance(request, Hello):
            return self._greet()
        if isinstance(request, Share):
            return self._share(request)
        if isinstance(request, Fit):
            return self._fit(request)
        if isinstance(request, Evaluate):
            return self._evaluate(request)
        raise RunError(f"{self.name}: expected a request for training, got {type(request).__name__}")

    def unshared(self) -> dict[Shared, Rows]:
        """Copies of the tables that this client does not share."""
        return self._tables.unshared()

    def _share(self, request: Share) -> Sharing:
        """Share only the requested rows from now on; the other rows stay here."""
        self._tables.share(request.places)
        return Sharing({kind: len(places) for kind, places in self._tables.places.items()})

    def entities_with(self, rows: Mapping[Shared, Rows]) -> Rows:
        """A copy of the whole entity table with the server's rows in it."""
        self._tables.check(rows)
        return self._tables.with_rows(rows).tables.entities.copy()

    def _greet(self) -> Greeting:
        names = {"entities": self.shard.entities.names, "relations": self.shard.relations.names}
        tables, shared = self._tables.all(), self._plan.shared
        return Greeting(
            names={kind: names[kind] for kind in shared},
            widths={kind: tables[kind].shape[1] for kind in shared},
            triples=self.triples,
        )

    @property
    def triples(self) -> int:
        """The number of triples that other parties may know."""
        return self._defence.triples

    def _fit(self, request: Fit) -> Upload | Goodbye:
        self._tables.check(request.rows)
        digest = fingerprint(request.rows, {})
        if request.round > self._state.round:
            if self._ledger and not self._pay(self._ledger, request.round):
                return Goodbye("its privacy budget is spent")
            self._train_or_undo(request, digest)
        elif (request.round, digest) != (self._state.round, self._state.began_from):
            raise RunError(
                f"{self.name} trained round {self._state.round} and is now asked for round {request.round} from other "
                "rows: server and client states do not belong together"
            )
        return Upload(request.round, self._tables.shared(), self.triples, self._state.loss)

    def _pay(self, ledger: Ledger, round_number: int) -> bool:
        """Charge the round before training. If the budget does not allow it, charge nothing and return False."""
        charges = self._rounds.charges(self._state.served + 1, self._state.validations)
        if not ledger.is_paid(self.name, round_number, charges) and ledger.is_prepaid(self.name, charges):
            charges = ()
        if not ledger.is_paid(self.name, round_number, charges) and not self._defence.affordable(
            ledger.charges_of_rounds(self.name), charges
        ):
            return False
        ledger.charge(self.name, round_number, charges)
        return True

    def _train_or_undo(self, request: Fit, digest: str) -> None:
        sent = {f"tables/{kind}": rows for kind, rows in request.rows.items() if kind not in self._tables.places}
        own = {name: array.copy() for name, array in self._lasting().items() if name not in sent}
        steps, before, released = self._trainer.steps, self._state, self.released
        self._training = request.round
        try:
            if self._draws(request):
                self._commit()  # the release may have cost the whole budget, so a failure must not lose it
                released = self.released
            self._state = self._trained(request, digest)
            self._commit()
        except BaseException:
            self._state = replace(before, began_from="")
            self._fill({**own, **sent})  # restore the visible tables first: making a trainer can fail
            self._take_release(released)
            self._trainer, self._rounds = self._new_trainer()
            self._fill(own)
            self._take_release(released)
            self._trainer.steps = steps
            self._training = 0
            raise
        self._training = 0

    def _take_release(self, released: Release | None) -> None:
        self._rounds.released = released

    def _draws(self, request: Fit) -> bool:
        """Draw a release that must be saved before training on it; returns whether there was one."""
        with self._failure_counts(request.round):
            return self._rounds.draw(self._source(request.round))

    def _trained(self, request: Fit, digest: str) -> _State:
        """Train a round; returns the new state."""
        served = self._state.served + 1
        with self._failure_counts(request.round):
            with np.errstate(over="ignore", invalid="ignore"):  # the trainer raises its own error for such values
                loss = self._train(request)
            validations = self._rounds.validated(self._state.validations, served)
        return _State(request.round, digest, loss, served, validations)

    @contextmanager
    def _failure_counts(self, round_number: int) -> Iterator[None]:
        """Count a failure as released: it may depend on triples, and the server learns of it. A repeated request is
        charged again.
        """
        try:
            yield
        except Exception:
            if self._ledger:
                self._ledger.release(self.name, round_number)
            raise

    def _source(self, round_number: int) -> NoiseSource:
        return self._defence.source(self._plan.number, round_number)

    def _train(self, request: Fit) -> float | None:
        self._tables.take(request.rows)
        options = self._plan.configuration
        if options.training.optimiser_state == "reset":
            self._trainer.reset_optimisers()
        self._trainer.set_rate(
            options.training.learning_rate * options.training.learning_rate_decay ** (request.round - 1)
        )
        generator = client_generator(self._plan.seed, self._plan.number, request.round)
        served, source = self._state.served + 1, self._source(request.round)
        return self._rounds.train(served, self._state.validations, source, generator, self._advance)

    def _evaluate(self, request: Evaluate) -> RankingMetrics:
        if self._ledger:
            raise PrivacyError(
                f"{self.name} has a defence, and no budget pays for ranking its private triples for the server; "
                "evaluate at the site"
            )
        self._tables.check(request.rows)
        keep, triples = self._plan.configuration.data.keep_leaked, self.shard.split(request.split)
        if len(triples) == 0 or (not keep and leaked(self.shard, triples).all()):
            return RankingMetrics(triples=0)
        limit = self._plan.configuration.training.validation_triples if request.split == "valid" else 0
        result = evaluate(
            self._tables.with_rows(request.rows),
            self.shard,
            request.split,
            controls=request.split == "test",
            keep_leaked=keep,
            sample=limit or None,
            threads=self._plan.threads,
        )
        return RankingMetrics.of(result)

    def _lasting(self) -> dict[str, NDArray[Any]]:
        """The arrays that last beyond a round: both tables and the states of the optimisers."""
        arrays = {f"tables/{kind}": table for kind, table in self._tables.all().items()}
        if self._plan.configuration.training.optimiser_state == "kept":
            optimisers = {"entities": self._trainer.entity_optimiser, "relations": self._trainer.relation_optimiser}
            for kind, optimiser in optimisers.items():
                arrays |= {f"optimiser/{kind}/{key}": array for key, array in optimiser.state().items()}
        return arrays | self._rounds.lasting()

    def _fill(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        places = self._lasting()
        for name, array in tensors.items():
            places[name][...] = array

    def continue_from(self, relations: Rows, steps: int, rounds: int, released: Release | None = None) -> None:
        """Continue from recorded relations, steps, rounds and release; for forks."""
        self._take_release(released)
        self.embedding.tables.relations[...] = relations
        self._trainer.steps, self._state = steps, _State(served=rounds)

    def save(self) -> None:
        """Save the state on disk before the first round, if this client has a folder."""
        self._file.begin(*self._record())

    def _commit(self) -> None:
        """Save the state with the draws of this round, and record the release in the ledger."""
        self._file.commit(self._training, *self._record())

    def _record(self) -> State:
        arrays = self.released.arrays() if self.released else {}
        released = {f"{RELEASED}{key}": array for key, array in arrays.items()}
        return {**self._lasting(), **released}, {**asdict(self._state), "steps": self._trainer.steps}

    def _take(self, saved: Mapping[str, NDArray[Any]], facts: dict[str, Any]) -> None:
        """Continue from a saved state."""
        tensors = {name: array for name, array in saved.items() if not name.startswith(RELEASED)}
        self._take_release(release_in(saved, chosen_defence(self._plan.configuration)))
        expected = {name: array.shape for name, array in self._lasting().items()}
        found = {name: array.shape for name, array in tensors.items()}
        if found != expected:
            wrong = sorted(name for name in {**expected, **found} if expected.get(name) != found.get(name))
            raise RunError(
                f"{self._file.path}: the checkpoint of {self.name} does not fit its graph and configuration "
                f"({', '.join(wrong)})"
            )
        try:
            state = _STATE.validate_json(json.dumps(facts), strict=True)
        except ValidationError as error:
            keys = ", ".join(".".join(map(str, item["loc"])) for item in error.errors())
            raise RunError(
                f"{self._file.path}: expected the state of a client, got invalid values for {keys}; restore the file"
            ) from error
        self._fill(tensors)
        self._trainer.steps, self._state = facts["steps"], state
