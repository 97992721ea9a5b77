"""Changes to the code that the suite once let through. Each has a test here that fails if it is made again.

| the change | the test that fails |
|---|---|
| corruptions drawn from the public seed | `test_coins_follow_the_secret_source_alone` |
| batches, counts, answers or rows of fest drawn from the public seed | `test_coins_follow_the_secret_source_alone` |
| a noise key of 20 bits | `test_every_bit_of_a_key_of_128_bits_counts`, `test_secret_sources_never_meet` |
| the cap on questions from the true number of triples | `test_the_cap_on_questions_is_a_public_number` |
| the threshold of counts from the true number of triples | `test_thresholds_follow_public_sizes` |
| duplicates counted twice in a hand-made graph | `test_a_triple_that_stands_twice_counts_once` |
| the exact size made public | `test_what_is_told_does_not_follow_from_the_exact_size`, `test_without_a_public_...` |

The graphs have more than 1,000 triples and the neighbours differ in size, because most of these changes show nowhere
else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.defences import parse
from fedkge.defences.counts.released import CountPlan, ReleasedCounts, profile_cells
from fedkge.defences.noisy_copy import CopyPlan, NoisyCopy, noisy_copy
from fedkge.defences.noisy_steps.client import ClientSteps
from fedkge.defences.planning import client_defence
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Fit, Greeting, Hello, Upload
from fedkge.graph import Graph
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms import counts as counting
from fedkge.mechanisms.counts import NoisyCounts, threshold_for
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.per_triple import Differentiator
from tests.short_runs import SHORT

GRAPH = synthetic_graph(entities=150, relations=5, triples=4200, seed=4)
SIZES = len(GRAPH.entities), len(GRAPH.relations)
NUMBERS = (1001, 1100, 1101, 2048, 2999, len(GRAPH.train))
"""Numbers of triples of graphs with the same names."""
DEFENCES: dict[str, dict[str, Any]] = {
    "copy": {"defence": "recommended"},
    "steps": {"defence": "noisy-steps", "batch_size": 256, "negatives": 4},
    "fest": {"defence": "dp-flames", "selection": "fest", "batch_size": 256},
    "adafest": {"defence": "dp-flames", "batch_size": 256},
    "adam": {"defence": "dpsgd", "batch_size": 256},
}


def client_of(graph: Graph, options: dict[str, Any], seed: int = 5) -> Client:
    common = {**SHORT, "epsilon": 6.0, "evaluate_every": 0, "public_triples": 5000}
    configuration = parse({**common, **options, "seed": seed})
    ledger = Ledger.in_memory()
    defence = client_defence(configuration, "client-0", graph, ledger)
    plan = ClientPlan(configuration, seed, 0, ("entities",), defence=defence, ledger=ledger)
    return Client("client-0", graph, plan, None)


def first_round(client: Client, rows: np.ndarray | None = None) -> np.ndarray:
    """What the client uploads after a round from these rows, or from its own."""
    start = client.embedding.tables.entities.copy() if rows is None else rows
    reply = client.handle(Fit(1, {"entities": start}))
    assert isinstance(reply, Upload)
    return np.asarray(reply.rows["entities"])


# Coins


@contextmanager
def secret(number: int) -> Iterator[None]:
    """The operating system's random numbers are these, and nobody makes a source of noise in another way."""
    made: list[NoiseSource] = []
    begin = NoiseSource.__init__

    def watched(self: NoiseSource, *given: Any, **named: Any) -> None:
        made.append(self)
        begin(self, *given, **named)

    asked: list[NoiseSource] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(NoiseSource, "__init__", watched)
        patched.setattr(
            NoiseSource, "secret", classmethod(lambda _: asked.append(NoiseSource.research(number)) or asked[-1])
        )
        yield
    assert asked
    assert made == asked


def coins(options: dict[str, Any], seed: int, number: int) -> dict[str, list[Any]]:
    """Every coin that a client's first round throws: batches, their corruptions, counts, answers, chosen rows."""
    thrown: dict[str, list[Any]] = {"batches": [], "corruptions": [], "released": [], "rows": []}
    honest, choose = Differentiator.gradients, ClientSteps.choose_rows

    def gradients(self: Differentiator, batch: np.ndarray, drawn: np.ndarray) -> Any:
        thrown["batches"].append(batch.tolist())
        if drawn.size:
            thrown["corruptions"].append(drawn.tolist())
        return honest(self, batch, drawn)

    def choose_rows(self: ClientSteps, *given: Any) -> np.ndarray:
        thrown["rows"].append(choose(self, *given).tolist())
        return np.asarray(thrown["rows"][-1], np.int32)

    with secret(number), pytest.MonkeyPatch.context() as patched:
        patched.setattr(Differentiator, "gradients", gradients)
        patched.setattr(ClientSteps, "choose_rows", choose_rows)
        client = client_of(GRAPH, options, seed)
        first_round(client)
    arrays = client.released.arrays() if client.released is not None else {}
    kept = ("cells", "count_keys", "count_values", "profile_keys", "profile_values", "typed_keys", "typed_values")
    thrown["released"] = [arrays[name].tolist() for name in kept if name in arrays]
    return {name: values for name, values in thrown.items() if values}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("copy", {"released"}),
        ("steps", {"batches", "corruptions", "released"}),
        ("fest", {"batches", "rows"}),
        ("adafest", {"batches"}),
        ("adam", {"batches", "corruptions"}),
    ],
)
def test_coins_follow_the_secret_source_alone(name: str, kinds: set[str]) -> None:
    """With the same secret numbers and another public seed all coins are the same; with others and the same public
    seed all differ. So whoever knows the public seed knows none of them.
    """
    one, other_seed, other_secret = (coins(DEFENCES[name], *numbers) for numbers in ((1, 1), (2, 1), (1, 2)))
    assert kinds <= set(one)
    assert one == other_seed
    assert all(one[kind] != other_secret[kind] for kind in one)


# The noise key


def test_every_bit_of_a_key_of_128_bits_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret source asks the operating system for 128 bits at least and uses each of them."""
    asked: list[int] = []
    streams = set()
    for place in range(128):
        monkeypatch.setattr(secrets, "randbits", lambda bits, place=place: asked.append(bits) or 1 << place)
        streams.add(tuple(NoiseSource.secret().generator.integers(0, 2**63, 4).tolist()))
    assert len(asked) == 128
    assert min(asked) >= 128
    assert len(streams) == 128


def test_secret_sources_never_meet() -> None:
    """Of 8,192 sources no two begin alike. With a key of 20 bits 32 pairs would, so none with a chance of e**-32; with
    one of 128 bits two do with a chance of 1e-31.
    """
    sources = [NoiseSource.secret() for _ in range(8192)]
    begins = {tuple(source.generator.integers(0, 2**63, 2).tolist()) for source in sources}
    assert len(begins) == len(sources)
    noise = {source.gaussian(2, 1.0).tobytes() for source in sources[:1024]}
    assert len(noise) == 1024


# Public numbers


@pytest.mark.parametrize("plan", [CopyPlan(0.5, 5.0), CopyPlan(4.0, 0.2)], ids=["many asked", "few asked"])
@pytest.mark.parametrize("most", [noisy_copy.MOST_ASKED, 9000, 1500])
def test_the_cap_on_questions_is_a_public_number(plan: CopyPlan, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of different sizes with the same noisy counts are asked the same, down to the same rate."""
    distinct = np.unique(GRAPH.train, axis=0).astype(np.int64)
    cells = profile_cells(distinct, *SIZES)
    counts = NoisyCounts.release(cells, 2 * SIZES[0] * SIZES[1], plan.profile_scale, NoiseSource.research(1))
    asked: list[np.ndarray] = []
    honest = noisy_copy.respond
    monkeypatch.setattr(noisy_copy, "MOST_ASKED", most)
    monkeypatch.setattr(noisy_copy, "respond", lambda cells, *rest: asked.append(cells) or honest(cells, *rest))
    monkeypatch.setattr(NoisyCounts, "release", classmethod(lambda *_: counts))
    least = {
        NoisyCopy.draw(GRAPH.train[:number], *SIZES, plan, NoiseSource.research(2)).questions.least  # type: ignore[union-attr]
        for number in NUMBERS
    }
    assert len(least) == 1
    assert all(np.array_equal(asked[0], other) for other in asked[1:])
    assert 0 < len(asked[0]) <= most


@pytest.mark.parametrize("false_cells", [counting.MOST_FALSE, 50, 2])
def test_thresholds_follow_public_sizes(false_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tables of counts, of graphs of different sizes, are cut off where their public sizes say."""
    monkeypatch.setattr(counting, "MOST_FALSE", false_cells)
    size, plan = 2 * SIZES[0] * SIZES[1], CountPlan(1.5, 1.5, 4)
    found = set()
    for number in NUMBERS:
        triples = GRAPH.train[:number]
        copy = NoisyCopy.draw(triples, *SIZES, CopyPlan(1.5, 3.0), NoiseSource.research(3))
        tables = ReleasedCounts.draw(triples, *SIZES, plan, NoiseSource.research(3))
        assert copy.questions is not None
        found.add((copy.questions.counts.threshold, tables.profile.threshold, tables.typed.threshold))
    expected = threshold_for(size, 1.5)
    assert found == {(expected, expected, threshold_for(size * plan.types, 1.5))}


# Duplicates


@pytest.mark.parametrize("name", DEFENCES)
def test_a_triple_that_stands_twice_counts_once(name: str) -> None:
    """A graph that was made by hand may repeat triples, which readers remove; the same coins give the same upload."""
    repeated = replace(GRAPH, train=np.concatenate([GRAPH.train, GRAPH.train[::3], GRAPH.train[:40]]))
    assert len(repeated.train) > len(np.unique(repeated.train, axis=0)) == len(np.unique(GRAPH.train, axis=0))
    uploads, releases = [], []
    for graph in (GRAPH, repeated):
        with secret(3):
            client = client_of(graph, DEFENCES[name])
            uploads.append(first_round(client))
        arrays = client.released.arrays() if client.released is not None else {}
        releases.append({key: array.tolist() for key, array in arrays.items()})
    np.testing.assert_array_equal(*uploads)
    assert releases[0] == releases[1]


# Size


@pytest.mark.parametrize("name", DEFENCES)
def test_what_is_told_does_not_follow_from_the_exact_size(name: str) -> None:
    """Greeting, upload and promise of graphs of different sizes say the public number that was agreed on."""
    for number in NUMBERS[:3]:
        client = client_of(replace(GRAPH, train=GRAPH.train[:number]), DEFENCES[name])
        assert told(client) == {5000}


@pytest.mark.parametrize("name", ["copy", "steps"])
def test_without_a_public_number_a_noisy_one_is_told(name: str) -> None:
    """Always the same noisy number in greeting, upload and promise, and hardly ever the exact one: of noise of scale 20
    zero is one draw in 40, so three zeros in eight draws would be chance once in a thousand times; the seeds are fixed.
    """
    numbers = []
    for number in range(8):
        with secret(number):
            (one,) = told(client_of(GRAPH, {**DEFENCES[name], "public_triples": 0}))
        numbers.append(one)
    exact = len(np.unique(GRAPH.train, axis=0))
    assert len(set(numbers)) >= 5
    assert numbers.count(exact) <= 2
    assert abs(np.mean(numbers) - exact) < 60


def told(client: Client) -> set[int]:
    """Every number of triples that a client gives to others."""
    greeting = client.handle(Hello())
    reply = client.handle(Fit(1, {"entities": client.embedding.tables.entities.copy()}))
    assert isinstance(greeting, Greeting)
    assert isinstance(reply, Upload)
    ledger = client._plan.ledger
    assert ledger is not None
    return {greeting.triples, reply.triples, ledger.promises["client-0"].plan.triples}
