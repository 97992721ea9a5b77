"""The rounds of a client that trains by noisy steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.defences.counts.released import ReleasedCounts
from fedkge.defences.defence import Advance
from fedkge.defences.noisy_steps.options import steps_of
from fedkge.defences.noisy_steps.private_training import PrivateTrainer
from fedkge.defences.release import Release
from fedkge.evaluation import evaluate
from fedkge.graph import Graph, Triples, no_triples
from fedkge.graph.datasets import load
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.negatives import PublicNegatives
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.training import Trainer

if TYPE_CHECKING:
    from fedkge.defences.noisy_steps.client import ClientSteps


class NoisyRounds:
    """Trains the rounds that a `ClientSteps` plans; what it keeps between rounds was released before."""

    def __init__(self, defence: ClientSteps, trainer: Trainer, shard: Graph) -> None:
        self.defence = defence
        self._trainer, self._shard = trainer, shard
        self._rows: NDArray[np.int32] = np.full(len(shard.entities), -1, np.int32)
        """The rows that the selection has drawn once, then -1 to the end."""
        self.released: Release | None = None
        """The noisy counts, from the first round on: drawn once, and never part of an upload."""
        self._private = PrivateTrainer(trainer, shard.train, self._public_negatives())

    @property
    def tests(self) -> dict[str, int]:
        """How many propose-test-release tests were made and passed, where the selection makes any.

        Everybody may know: a round releases which of its tests passed, and pays for it.
        """
        tests = self._private.tests
        return {"made": tests.made, "passed": tests.passed} if self.defence.selection.makes_tests else {}

    @property
    def _chosen(self) -> bool:
        return bool(self._rows[0] >= 0)

    def lasting(self) -> dict[str, NDArray[Any]]:
        """The arrays that outlive a round."""
        selection = self.defence.selection
        tests = {"selection/tests": self._private.tests.counts} if selection.makes_tests else {}
        return tests | ({"selection/rows": self._rows} if selection.draws_once else {})

    def charges(self, served: int, validations: Sequence[float]) -> tuple[Charge, ...]:
        """What the round will cost that is the client's own number `served`."""
        return self.defence.charges(self.defence.noise_of(served, validations), first=self._draws_once(served))

    def _draws_once(self, served: int) -> bool:
        """Whether what is drawn once is drawn in this round."""
        return not self._chosen if self.defence.selection.draws_once else served == 1

    def draw(self, source: NoiseSource) -> bool:  # noqa: ARG002
        """Nothing is drawn before a round: what it draws is kept with it."""
        return False

    def train(
        self,
        served: int,
        validations: Sequence[float],
        source: NoiseSource,
        generator: np.random.Generator,
        advance: Advance,
    ) -> None:
        """Train a round that is paid for."""
        defence = self.defence
        if defence.counts and self._draws_once(served):
            sizes = len(self._shard.entities), len(self._shard.relations)
            self.released = ReleasedCounts.draw(self._shard.train, *sizes, defence.counts, source)
        if defence.selection.draws_once and not self._chosen:
            chosen = defence.choose_rows(self._shard.train, source)
            self._rows[: len(chosen)] = chosen
        plan = defence.plan(defence.noise_of(served, validations), self._rows[self._rows >= 0])
        self._trainer.set_rate(defence.rate(self._trainer.entity_optimiser.rate, plan))
        self._private.train(plan, defence.steps, source, generator, advance)

    def validated(self, before: tuple[float, ...], served: int) -> tuple[float, ...]:
        """The public validation MRRs after this round, where the noise depends on them."""
        options = self.defence.options
        if not self.defence.adaptive or served % max(1, options.training.evaluate_every):
            return before
        metrics = evaluate(self._trainer.embedding, self._validation, "valid", controls=False).metrics()
        return (*before, metrics["both.realistic.mrr"])

    @cached_property
    def _validation(self) -> Graph:
        """The public triples that the noise may follow, read once."""
        public = self._public_triples(steps_of(self.defence.options).public_validation)
        return Graph("public", self._shard.entities, self._shard.relations, train=no_triples(), valid=public)

    def _public_negatives(self) -> PublicNegatives | None:
        options = self.defence.options
        if steps_of(options).private_negatives == "inside":
            return None
        sizes = len(self._shard.entities), len(self._shard.relations)
        if not steps_of(options).public_graph:
            return PublicNegatives(*sizes)
        return PublicNegatives.of_graph(self._public_triples(steps_of(options).public_graph), *sizes)

    def _public_triples(self, name: str) -> Triples:
        """The triples of a public graph whose names this client knows, in its numbers."""
        public = load(name)
        entities, relations = (
            np.array([own.index.get(row, -1) for row in names], np.int32)
            for own, names in ((self._shard.entities, public.entities), (self._shard.relations, public.relations))
        )
        heads, kinds, tails = public.all_triples.T
        triples = np.column_stack([entities[heads], relations[kinds], entities[tails]])
        known = np.ascontiguousarray(triples[(triples >= 0).all(axis=1)])
        if not len(known):
            raise DataError(f"public graph {name!r}: expected triples among this client's names, found none")
        return known
