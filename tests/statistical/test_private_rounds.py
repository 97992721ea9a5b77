"""The noise of a whole round, from the broadcast to the upload: its deviation on entity rows and on relation rows.

With SGD, k steps move a row that no gradient reaches by N(0, k (rate sigma C1 / batch)**2) per number. Nearly all rows
here are such rows: the few others add at most a tenth of the standard deviation of the sum of squares that is tested.
Correct code alarms by chance with probability `FALSE_ALARM`, a millionth, per table and seed; every planted bug alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fedkge.accounting.ledger import Ledger
from fedkge.defences import parse
from fedkge.defences.planning import client_defence
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Fit, Upload
from fedkge.graph import Graph, Vocabulary, no_triples
from fedkge.mechanisms import LazyNoise, NoiseSource
from tests.statistical import detectors
from tests.statistical.detectors import alarms

ENTITIES, RELATIONS, WIDTH, TRIPLES, BATCH, RATE, NOISE, CLIP = 3000, 2000, 32, 8, 4, 0.5, 1.5, 1.2
Moved = dict[str, NDArray[np.float64]]


def moved(path: str, steps: int, seed: int = 11) -> Moved:
    """Upload minus broadcast of one round, its noise drawn lazily or in bulk."""
    triples = np.column_stack([np.arange(TRIPLES), np.arange(TRIPLES), np.arange(TRIPLES) + 1]).astype(np.int32)
    names = (
        Vocabulary(tuple(f"{kind}{i}" for i in range(count))) for kind, count in (("e", ENTITIES), ("r", RELATIONS))
    )
    shard = Graph("few", *names, train=triples, valid=no_triples(), test=no_triples())
    options = {"optimiser": "sgd", "learning_rate": RATE, "batch_size": BATCH, "local_steps": steps, "noise": NOISE}
    wide = {"dimension": WIDTH, "negatives": 1, "negative_group": 1, "clip": CLIP}
    safe = {"defence": "dpsgd", "private_negatives": "inside", "public_triples": TRIPLES, "noise_seed": seed}
    configuration, ledger = parse({**options, **wide, **safe, "evaluate_every": 0}), Ledger.in_memory()
    defence = client_defence(configuration, "client-0", shard, ledger)
    plan = ClientPlan(configuration, 5, 0, ("entities", "relations"), defence=defence, ledger=ledger)
    client = Client("client-0", shard, plan)
    private = client._rounds._private
    assert private._owed is not None, "SGD draws its noise lazily"
    if path == "bulk":
        private._owed = None
    tables = client.embedding.tables
    before = {"entities": tables.entities.copy(), "relations": tables.relations.copy()}
    reply = client.handle(Fit(1, before))
    assert isinstance(reply, Upload)
    return {kind: rows.astype(np.float64) - before[kind] for kind, rows in reply.rows.items()}


def found(rows: Moved, steps: int) -> dict[str, bool]:
    """Which table's noise has a wrong deviation."""
    deviation = RATE * NOISE * CLIP / BATCH * math.sqrt(steps)
    return {kind: alarms(detectors.variance(table, deviation)) for kind, table in rows.items()}


def half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = NoiseSource._release

    def half(source: NoiseSource, sums: Any, places: Any, deviation: float, *rest: Any) -> None:
        right(source, sums, places, deviation / 2, *rest)

    monkeypatch.setattr(NoiseSource, "_release", half)


def relations_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = NoiseSource.release

    def forgetful(source: NoiseSource, sums: Any, places: Any, deviation: float, *rest: Any) -> None:
        right(source, sums, places, 1e-9 if len(places) == RELATIONS else deviation, *rest)

    monkeypatch.setattr(NoiseSource, "release", forgetful)


def debts_never_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LazyNoise, "settle_all", lambda *_: None)


@pytest.mark.parametrize("path", ["lazy", "bulk"])
@pytest.mark.parametrize("steps", [1, 5])
def test_a_round_moves_every_row_by_the_noise_that_is_paid_for(path: str, steps: int) -> None:
    rows = moved(path, steps)
    assert found(rows, steps) == {"entities": False, "relations": False}
    untouched = rows["entities"][2 * TRIPLES :]
    assert not alarms(detectors.correlation(untouched[1:], untouched[:-1], RATE * NOISE * CLIP / BATCH * steps**0.5))


@pytest.mark.parametrize(
    ("plant", "path", "caught"),
    [
        (half_the_noise, "lazy", {"entities": True, "relations": True}),
        (half_the_noise, "bulk", {"entities": True, "relations": True}),
        (relations_without_noise, "lazy", {"entities": False, "relations": True}),
        (relations_without_noise, "bulk", {"entities": False, "relations": True}),
        (debts_never_settled, "lazy", {"entities": True, "relations": False}),
    ],
)
@pytest.mark.parametrize("steps", [1, 5])
def test_wrong_noise_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    path: str,
    caught: dict[str, bool],
    steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    assert found(moved(path, steps), steps) == caught
