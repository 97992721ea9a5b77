"""A selection or schedule that a stranger registers is the one that trains, is charged, promised and calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import fedkge as fk
from fedkge.accounting.facts import NoisySteps
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.validity import FaultKind, faults
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.defences import check_defence, parse
from fedkge.defences.noisy_steps.client import ClientSteps
from fedkge.defences.planning import client_defence
from fedkge.mechanisms import SCHEDULES, SELECTIONS
from fedkge.mechanisms.events import Gaussian, SampledGaussian
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.schedule import Schedule, ScheduleSettings
from fedkge.mechanisms.selection import Built, Rows, Selected, Selection, SelectionSettings, Touched

SHARDS = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=500, seed=1), clients=2, seed=7)
OPTIONS = {
    "defence": "dp-flames",
    "selection": "every-second",
    "epsilon": 8.0,
    "noise_seed": 1,
    "seed": 5,
    "rounds": 2,
    "dimension": 8,
    "batch_size": 32,
    "local_steps": 2,
    "public_triples": 250,
    "evaluate_every": 0,
}
ASKED: list[int] = []


@dataclass(frozen=True, slots=True)
class EverySecond(Selection):
    """Releases every second row, with twice the noise, and pays for a draw that it makes once."""

    name: ClassVar[str] = "every-second"
    is_private: ClassVar[bool] = True
    releases_all: ClassVar[bool] = False
    draws_once: ClassVar[bool] = True

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:  # noqa: ARG003
        return cls(), 2 * settings.noise

    @classmethod
    def draw(cls, settings: SelectionSettings, triples: Rows, source: NoiseSource) -> Rows:  # noqa: ARG003
        return np.arange(0, settings.entities, 2, dtype=np.int32)

    def select(self, touched: Touched, source: NoiseSource) -> Selected:  # noqa: ARG002
        ASKED.append(touched.table)
        return Selected(np.arange(0, touched.table, 2, dtype=np.int32))

    def event(self, rate: float, multiplier: float) -> SampledGaussian:
        return SampledGaussian(rate, multiplier)

    def events_once(self) -> tuple[Gaussian, ...]:
        return (Gaussian(7.0),)


@dataclass(frozen=True, slots=True)
class Halving(Schedule):
    """Half the noise from the second round on."""

    base: float

    name: ClassVar[str] = "halving"
    adaptive: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: ScheduleSettings) -> Halving:
        return cls(settings.base)

    def multiplier(self, round_number: int, history: object = ()) -> float:  # noqa: ARG002
        return self.base if round_number == 1 else self.base / 2


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SELECTIONS, EverySecond.name, EverySecond)
    monkeypatch.setitem(SCHEDULES, Halving.name, Halving)
    ASKED.clear()


def test_a_registered_selection_trains_is_charged_promised_and_calibrated() -> None:
    run = fk.train(SHARDS, **OPTIONS)
    assert run.ledger is not None
    assert len(ASKED) == 2 * 2 * 2  # clients, rounds, steps: it chose the rows, and nobody else did
    for client in run.ledger.clients:
        promise = run.ledger.promises[client]
        mechanism, noise = promise.facts.mechanism, promise.plan.noise
        assert isinstance(mechanism, NoisySteps)
        assert mechanism.selection == "every-second"
        assert [fault.kind for fault in faults(promise)] == [FaultKind.RESEARCH_SEED]
        events = [charge.event for charge in run.ledger.charges(client)]
        assert Gaussian(7.0) in events
        assert any(isinstance(event, SampledGaussian) and event.multiplier == 2 * noise for event in events)
        assert 0.98 * 8 < run.ledger.spent(client) <= 8


def test_a_registered_selection_decides_which_rows_move() -> None:
    options = parse({**OPTIONS, "private_negatives": "public"})
    defence = client_defence(options, "client-0", SHARDS[0], Ledger.in_memory())
    assert isinstance(defence, ClientSteps)
    plan = defence.plan(1.5, np.empty(0, np.int32))
    assert isinstance(plan.selection, EverySecond)
    assert plan.multiplier == 3.0


def test_a_registered_schedule_is_charged_and_calibrated() -> None:
    run = fk.train(SHARDS, **{**OPTIONS, "selection": "adafest", "noise_schedule": "halving"})
    assert run.ledger is not None
    first, second = run.ledger.by_round("client-0")
    assert first.charges[-1].event.selection == 2 * second.charges[-1].event.selection  # type: ignore[union-attr]
    assert 0.98 * 8 < run.ledger.spent("client-0") <= 8


def test_its_own_words_decide_what_goes_with_it() -> None:
    with pytest.raises(PrivacyError, match="every-second would not noise"):
        check_defence(parse({**OPTIONS, "private_negatives": "inside"}))
    with pytest.raises(ConfigurationError, match="unknown selection 'every-third': did you mean every-second"):
        check_defence(parse({**OPTIONS, "selection": "every-third"}))
    with pytest.raises(ConfigurationError, match="unknown noise schedule 'halving-it'"):
        check_defence(parse({**OPTIONS, "noise_schedule": "halving-it"}))
