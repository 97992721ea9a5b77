"""Neighbouring graphs, and releases that are the same on both: what a release drew on the first is drawn again.

With the same releases, whatever may be passed on must be the same byte for byte. Forced is exactly what a ledger pays
for: sizes, names by threshold, noisy counts, answers, sums of gradients with noise, and figures; and random tokens, on
which no triple has any influence. Everything else runs as it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedkge.accounting import ledger_chain
from fedkge.defences import advance, name_release
from fedkge.defences.noisy_copy import noisy_copy
from fedkge.defences.noisy_steps.private_training import PrivateTrainer
from fedkge.graph import Graph
from fedkge.graph.shards import summarise
from fedkge.graph.split import Shards, split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.mechanisms.fest import Fest
from fedkge.mechanisms.metrics import NoisyMean
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.plan import StepPlan
from fedkge.runs import directory
from fedkge.store.state_folder import VARIABLE

TRIPLES = 3400
"""Of two clients together; each has more than 1,000 training triples."""


def graphs() -> Shards:
    """Two clients."""
    made = synthetic_graph(entities=150, relations=6, triples=TRIPLES, seed=3)
    shards = split(made, clients=2, by="entity", seed=3, overlap=0.5)
    assert min(len(shard.train) for shard in shards) > 1000
    return shards


def neighbour(shards: Shards, part: str) -> Shards:
    """The same, but client-0 has one triple less in this part of its graph; all names stay."""
    first = shards.graphs[0]
    triples = getattr(first, part)
    place = _removable(first, part)
    less = replace(first, **{part: np.ascontiguousarray(np.delete(triples, place, axis=0))})
    others = tuple(_without(shard, triples[place], first) for shard in shards.graphs[1:])
    made = (less, *others)
    assert len(less.all_triples) == len(first.all_triples) - 1
    return Shards(shards.name, made, summarise(made))


def _removable(graph: Graph, part: str) -> int:
    """The first triple whose names occur elsewhere in train too, so that no name goes with it."""
    entities = np.bincount(graph.train[:, [0, 2]].ravel(), minlength=len(graph.entities))
    relations = np.bincount(graph.train[:, 1], minlength=len(graph.relations))
    for place, (head, relation, tail) in enumerate(getattr(graph, part)):
        if min(entities[head], entities[tail]) > 2 and relations[relation] > 1:
            return place
    raise AssertionError("expected a triple with frequent names")


def _without(shard: Graph, triple: Any, owner: Graph) -> Graph:
    """What the experimenter knows of others' triples has one less as well."""
    head, relation, tail = triple
    names = owner.entities[head], owner.relations[relation], owner.entities[tail]
    if names[0] not in shard.entities or names[1] not in shard.relations or names[2] not in shard.entities:
        return shard
    ids = [shard.entities.index[names[0]], shard.relations.index[names[1]], shard.entities.index[names[2]]]
    kept = ~(shard.elsewhere == ids).all(axis=1)
    return replace(shard, elsewhere=np.ascontiguousarray(shard.elsewhere[kept]))


class Releases:
    """What was released, in order; `recorded` the first time, `forced` the second."""

    def __init__(self) -> None:
        self._values: list[tuple[str, Any]] = []
        self._next = 0
        self._forced = False

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Let every release be drawn, and keep it."""
        self._forced = False
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as state:
            patch.setenv(VARIABLE, state)  # a machine of its own: equal tokens there are no rollback
            self._replace(patch)
            yield
        assert self._values, "nothing was released"

    @contextmanager
    def forced(self) -> Iterator[None]:
        """Draw what was drawn before; every release must come again, in the same order, and no other."""
        self._forced, self._next = True, 0
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as state:
            patch.setenv(VARIABLE, state)  # a machine of its own: equal tokens there are no rollback
            self._replace(patch)
            yield
        assert self._next == len(self._values), "fewer releases than before"

    def take(self, kind: str, draw: Callable[[], Any]) -> Any:
        """What this release drew the first time, or draws now."""
        if not self._forced:
            value = draw()
            self._values.append((kind, value))
            return value
        draw()  # it looks at the neighbour's triples as ever
        expected, value = self._values[self._next]
        assert kind == expected, f"release {self._next}: expected {expected}, got {kind}"
        self._next += 1
        return value

    def _replace(self, patch: pytest.MonkeyPatch) -> None:
        counts, respond, gradients = NoisyCounts.release, noisy_copy.respond, NoiseSource.release
        means = NoisyMean.release
        patch.setattr(NoisyCounts, "release", lambda *values: self.take("counts", lambda: counts(*values)))
        patch.setattr(noisy_copy, "respond", lambda *values: self.take("answers", lambda: respond(*values)))
        patch.setattr(NoiseSource, "release", self._gradients(gradients))
        patch.setattr(Fest, "of_histogram", self._function("rows", Fest.of_histogram))
        patch.setattr(NoisyMean, "release", lambda *values: self.take("figures", lambda: means(*values)))
        patch.setattr(PrivateTrainer, "train", self._steps(PrivateTrainer.train))
        for module, name in (
            (advance, "noisy_size"),
            (name_release, "released_names"),
            (ledger_chain, "fresh_token"),
            (directory, "fresh_token"),
        ):
            patch.setattr(module, name, self._function(name, getattr(module, name)))
        salt = SimpleNamespace(token_hex=self._function("salt", secrets.token_hex))
        patch.setattr(name_release, "secrets", salt)

    def _function(self, kind: str, genuine: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *values: self.take(kind, lambda: genuine(*values))

    def _gradients(self, genuine: Callable[..., None]) -> Callable[..., None]:
        def release(source: Any, sums: Any, places: Any, deviation: float, batch: int, out: Any) -> None:
            def draw() -> Any:
                genuine(source, sums, places, deviation, batch, out)
                return out.copy()

            out[...] = self.take("gradients", draw)

        return release

    def _steps(self, genuine: Callable[..., None]) -> Callable[..., None]:
        """Under SGD noise waits until a row is read, and a selection chooses rows first: the release of all steps
        together is the tables after them, and how many tests passed."""

        def train(trainer: PrivateTrainer, plan: StepPlan, *values: Any) -> None:
            if trainer._owed is None and plan.selection.releases_all:
                genuine(trainer, plan, *values)
                return
            tables, tests = trainer._trainer.embedding.tables, trainer.tests.counts
            before = self._values[:], self._next

            def draw() -> Any:
                with pytest.MonkeyPatch.context() as inner:
                    inner.setattr(self, "take", lambda _kind, each: each())
                    genuine(trainer, plan, *values)
                return tables.entities.copy(), tables.relations.copy(), tests.copy()

            assert (self._values, self._next) == before
            tables.entities[...], tables.relations[...], tests[...] = self.take("steps", draw)

        return train
