"""What every selection must do: build itself, choose rows of the table, say what that costs, and train a federation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedkge as fk
from fedkge.accounting.facts import NoisySteps
from fedkge.accounting.rdp import RDPAccountant
from fedkge.graph.split import Shards
from fedkge.mechanisms import SELECTIONS, Clip, NoiseSource, Selected, Selection, SelectionSettings, Touched
from fedkge.mechanisms.events import Charge, Event
from tests.cases import Case

CLIP = Clip(1.2, 0.8)
SETTINGS = SelectionSettings(
    noise=1.5,
    first_noise=2.0,
    clip=CLIP,
    batch=2,
    entities=40,
    share=0.2,
    threshold=0.5,
    kept=0.25,
    failure=0.01,
)
TRIPLES = np.array([[0, 0, 1], [2, 0, 2], [2, 1, 3], [2, 0, 1]], np.int32)


def touched_of(norms: dict[int, float], table: int, counts: list[int] | None = None) -> Touched:
    rows = np.array(list(norms), np.int32)
    many = np.ones(len(rows), np.int64) if counts is None else np.array(counts, np.int64)
    return Touched(rows, many, np.array(list(norms.values())), table)


touched_values = st.integers(5, 40).flatmap(
    lambda table: st.builds(
        touched_of,
        st.dictionaries(st.integers(0, table - 1), st.sampled_from([0.0, 0.4, 0.8, 1.0, 3.0, 9.0]), max_size=table),
        st.just(table),
    )
)


class SelectionCase(Case):
    """A registered selection. A subclass names it, makes one by hand, and says what a step with it costs."""

    is_private: ClassVar[bool] = True

    def by_hand(self) -> Selection:
        """One for tables of at least 5 rows."""
        raise NotImplementedError

    def costs(self) -> Event:
        """What a step of `by_hand` costs at rate 0.1 and multiplier 1."""
        raise NotImplementedError

    @property
    def kind(self) -> type[Selection]:
        return SELECTIONS[self.name]

    def built(self) -> tuple[Selection, float]:
        rows = self.kind.draw(SETTINGS, TRIPLES, NoiseSource.research(1)) if self.kind.draws_once else None
        return self.kind.build(SETTINGS, rows)

    def test_the_registry_builds_what_it_names(self) -> None:
        selection, noise = self.built()
        assert type(selection) is type(self.by_hand()) is self.kind
        assert selection.name == self.name
        assert np.isfinite(noise)
        assert noise > 0
        self.kind.check(SETTINGS)

    def test_its_event_and_its_label(self) -> None:
        assert self.by_hand().event(0.1, 1) == self.costs()
        assert self.kind.is_private is self.is_private
        cost = RDPAccountant().epsilon([Charge(self.costs())], 0.5)  # more than its test may fail
        assert np.isfinite(cost) == self.is_private

    def test_a_step_costs_at_least_what_the_noise_on_gradients_costs(self) -> None:
        """A selection is paid for: it cannot make a step cheaper than its gradients."""
        selection, noise = self.built()
        step = RDPAccountant().epsilon([Charge(selection.event(0.1, noise), 10)], 1e-5)
        gradients = RDPAccountant().epsilon([Charge(SELECTIONS["dense"]().event(0.1, noise), 10)], 1e-5)
        assert step >= gradients * (1 - 1e-9)

    @given(touched=touched_values, seed=st.integers(0, 1000))
    def test_selected_rows_are_sorted_distinct_rows_of_the_table(self, touched: Touched, seed: int) -> None:
        selected: Selected = self.by_hand().select(touched, NoiseSource.research(seed))
        assert selected.rows.dtype == np.int32
        assert (np.diff(selected.rows) > 0).all()
        assert selected.rows.size == 0 or (selected.rows[0] >= 0 and selected.rows[-1] < touched.table)
        assert (selected.passed is not None) is self.kind.makes_tests
        if self.kind.releases_all:
            assert selected.rows.tolist() == list(range(touched.table))

    @given(touched=touched_values, seed=st.integers(0, 1000))
    def test_the_same_coins_choose_the_same_rows(self, touched: Touched, seed: int) -> None:
        one, two = (self.by_hand().select(touched, NoiseSource.research(seed)) for _ in range(2))
        assert one.rows.tolist() == two.rows.tolist()
        assert one.passed == two.passed

    def test_what_is_drawn_once_is_paid_for_once(self) -> None:
        selection, _ = self.built()
        if self.kind.draws_once:
            rows = self.kind.draw(SETTINGS, TRIPLES, NoiseSource.research(1))
            assert set(rows.tolist()) <= set(range(SETTINGS.entities))
            assert selection.events_once()
            assert np.isfinite(RDPAccountant().epsilon([Charge(event) for event in selection.events_once()], 1e-5))
        else:
            assert selection.events_once() == ()
            with pytest.raises(NotImplementedError, match=self.name):
                self.kind.draw(SETTINGS, TRIPLES, NoiseSource.research(1))

    def test_a_federation_trains_is_charged_and_promises_with_it(self, shards: Shards) -> None:
        run = fk.train(shards, **self.options())
        assert run.ledger is not None
        for client in run.ledger.clients:
            mechanism = run.ledger.promises[client].facts.mechanism
            assert isinstance(mechanism, NoisySteps)
            assert mechanism.selection == self.name
            steps = [charge for charge in run.ledger.charges(client) if type(charge.event) is type(self.costs())]
            assert sum(charge.steps for charge in steps) == 2
        same = fk.train(shards, **self.options())
        assert all(run.tensors[name].tobytes() == same.tensors[name].tobytes() for name in run.tensors)

    def options(self) -> dict[str, Any]:
        return {
            "defence": "dp-flames",
            "selection": self.name,
            "noise": 1.5,
            "noise_seed": 1,
            "seed": 5,
            "rounds": 1,
            "dimension": 8,
            "batch_size": 16,
            "local_steps": 2,
            "public_triples": 250,
            "evaluate_every": 0,
        }
