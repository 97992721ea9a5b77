"""What every defence must do: pay, keep its budget, repeat itself bit for bit, and say when it promises nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fedkge.api.training import resume, start
from fedkge.base.errors import FedkgeError
from fedkge.configuration import Configuration, PrivacySection
from fedkge.defences import DEFENCES, Defence, check_defence, chosen_defence, parse, promised_defence
from fedkge.defences.defence import Auditing, Gradients
from fedkge.defences.planning import client_defence
from fedkge.graph.split import Shards
from fedkge.runs.run import Run
from tests.cases import Case
from tests.short_runs import SHORT, break_off

EPSILON = 8.0
RUNS: dict[str, Run] = {}
"""One for each defence; its tests only read it."""


class DefenceCase(Case):
    """A registered defence. A subclass names it and adds options that make its runs short."""

    promises: ClassVar[bool] = True
    extra: ClassVar[dict[str, Any]] = {}

    def options(self, **options: Any) -> Configuration:
        budget = {"epsilon": EPSILON, "noise_seed": 3, "public_triples": 250} if self.promises else {}
        short = {**SHORT, "rounds": 2, "evaluate_every": 0}
        return parse({**short, "defence": self.name, **budget, **self.extra, **options})

    @property
    def defence(self) -> Defence:
        return DEFENCES[self.name]

    @pytest.fixture
    def run(self, shards: Shards) -> Run:
        if self.name not in RUNS:
            RUNS[self.name] = start(self.options(), shards.graphs)
        return RUNS[self.name]

    def test_the_registry_has_it_under_its_name(self) -> None:
        assert self.defence.name == self.name
        assert chosen_defence(self.options()) is self.defence
        assert issubclass(self.defence.options, PrivacySection)
        assert type(self.options().privacy) is self.defence.options
        check_defence(self.options())

    def test_a_ledger_is_kept_where_it_promises(self, run: Run) -> None:
        assert self.defence.keeps_ledger is self.promises
        if not self.promises:
            assert run.ledger is None or not run.ledger.clients
            return
        assert run.ledger is not None
        assert list(run.ledger.clients) == list(run.clients)
        for client in run.clients:
            promise = run.ledger.promises[client]
            assert promised_defence(promise) is self.defence
            assert promise.epsilon == EPSILON
            assert run.ledger.charges(client)

    def test_what_is_spent_stays_within_the_budget_and_is_most_of_it(self, run: Run) -> None:
        for client in run.clients if self.promises else ():
            assert run.ledger is not None
            assert 0.5 * EPSILON < run.ledger.spent(client) <= EPSILON

    def test_no_round_costs_more_than_was_planned(self, shards: Shards, run: Run) -> None:
        """The plan follows from options and public numbers, before a triple is seen."""
        if self.promises:
            assert run.ledger is not None
            planned = client_defence(self.options(), "client-0", shards[0], type(run.ledger).in_memory(), 0)
            assert planned is not None
            assert planned.accountant.epsilon(planned.planned(2), planned.delta) <= EPSILON
            charged = planned.accountant.epsilon(run.ledger.charges("client-0"), planned.delta)
            assert charged <= planned.accountant.epsilon(planned.planned(2), planned.delta) * (1 + 1e-9)
            least = planned.least_multiplier()
            assert (least is not None and least > 0) is self.defence.has_noise_multiplier

    def test_a_promise_needs_a_budget(self) -> None:
        if self.promises:
            with pytest.raises(FedkgeError, match="epsilon"):
                check_defence(self.options(epsilon=None))

    def test_the_model_is_finite_and_the_same_bits_again(self, shards: Shards, run: Run) -> None:
        assert all(np.isfinite(tensor).all() for tensor in run.tensors.values())
        same_bits(run, start(self.options(threads=2), shards.graphs))

    def test_noise_follows_its_seed(self, shards: Shards, run: Run) -> None:
        if self.promises:
            other = start(self.options(noise_seed=4), shards.graphs)
            assert any(run.tensors[name].tobytes() != other.tensors[name].tobytes() for name in run.tensors)

    def test_a_run_that_is_cut_off_ends_with_the_same_bits_and_the_same_bill(
        self, shards: Shards, run: Run, tmp_path: Path
    ) -> None:
        break_off(self.options(), shards, tmp_path / "run", rounds=1)
        again = resume(tmp_path / "run", data=shards)
        same_bits(run, again)
        for client in run.clients if self.promises else ():
            assert again.ledger is not None
            assert run.ledger is not None
            assert again.ledger.spent(client) == run.ledger.spent(client)

    def test_it_can_be_described_and_audited(self) -> None:
        words = self.defence.describe(self.options())
        assert bool(words.not_private) is not self.promises
        assert words.canaries
        assert isinstance(self.defence.auditing, Auditing)
        gradients = self.defence.gradients(self.options())
        assert isinstance(gradients, Gradients)
        assert gradients.clip is None or math.isfinite(gradients.clip.sensitivity)


def same_bits(one: Run, other: Run) -> None:
    assert set(one.tensors) == set(other.tensors)
    for name, tensor in one.tensors.items():
        assert tensor.tobytes() == other.tensors[name].tobytes(), name
