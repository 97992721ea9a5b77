from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedkge.base.errors import ConfigurationError
from fedkge.federation import aggregation
from fedkge.federation.aggregation import AGGREGATIONS, average, make_aggregation
from fedkge.federation.claimed_weights import believable_weights
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.server import Server, ServerPlan
from fedkge.federation.upload_checks import complaint
from fedkge.runs.run import shape_of
from tests.short_runs import make_clients, short

FLOATS = st.floats(-1000, 1000, width=32)


@pytest.fixture(autouse=True, scope="module", params=[1, 4, 4096])
def rows_at_once(request):
    """Small blocks too, so that small tables have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation, "ROWS_AT_ONCE", request.param)
        yield


@st.composite
def federations(draw):
    """A table, and for some clients the rows that each owns and uploads."""
    size, width = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    table = draw(arrays(np.float32, (size, width), elements=FLOATS))
    owners, uploads, weights = {}, {}, {}
    for number in range(draw(st.integers(1, 5))):
        places = draw(st.lists(st.integers(0, size - 1), unique=True))
        owners[f"client-{number}"] = np.array(places, dtype=np.int64)
        uploads[f"client-{number}"] = draw(arrays(np.float32, (len(places), width), elements=FLOATS))
        weights[f"client-{number}"] = float(draw(st.integers(1, 10**6)))
    return table, uploads, owners, weights


def brute_force(table, uploads, owners, weights):
    """One row and one column at a time."""
    result = table.copy()
    for row in range(len(table)):
        holders = [(name, list(owners[name]).index(row)) for name in sorted(uploads) if row in owners[name]]
        for column in range(table.shape[1]):
            total = sum(weights[name] for name, _ in holders)
            if holders:
                summed = sum(weights[name] * float(uploads[name][place, column]) for name, place in holders)
                result[row, column] = np.float32(summed / total)
    return result


@given(federations())
def test_unweighted_mean_equals_brute_force(federation):
    table, uploads, owners, weights = federation
    equal = dict.fromkeys(weights, 1.0)
    np.testing.assert_array_equal(average(table, uploads, owners, equal), brute_force(table, uploads, owners, equal))


@given(federations())
def test_weighted_mean_equals_brute_force(federation):
    np.testing.assert_array_equal(average(*federation), brute_force(*federation))


@given(federations(), st.randoms(use_true_random=False))
def test_order_of_answers_does_not_matter(federation, random):
    table, uploads, owners, weights = federation
    shuffled = list(uploads.items())
    random.shuffle(shuffled)
    assert average(table, dict(shuffled), owners, weights).tobytes() == average(*federation).tobytes()


@given(
    arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)),
    st.lists(st.integers(1, 10**9), min_size=1, max_size=6),
)
def test_mean_of_equal_rows_is_that_row_bit_for_bit(rows, weights):
    names = [f"client-{number}" for number in range(len(weights))]
    everything = dict.fromkeys(names, np.arange(3))
    weight = {name: float(number) for name, number in zip(names, weights, strict=True)}
    result = average(np.ones_like(rows), dict.fromkeys(names, rows), everything, weight)
    assert result.tobytes() == rows.tobytes()


@given(federations())
def test_rows_that_nobody_uploaded_stay_and_the_input_is_left_alone(federation):
    table, uploads, owners, _ = federation
    before = table.tobytes()
    result = average(*federation)
    lonely = sorted(set(range(len(table))) - {int(place) for name in uploads for place in owners[name]})
    assert result[lonely].tobytes() == table[lonely].tobytes()
    assert table.tobytes() == before
    assert result.dtype == np.float32


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[1.0, 2.0]], "expected a float32 table, got list"),
        (np.zeros((2, 2)), "expected a float32 table, got float64"),
        (np.zeros((2, 3), np.float32), "expected shape (2, 2), got (2, 3)"),
        (np.zeros(4, np.float32), "expected shape (2, 2), got (4,)"),
        (np.array([[0, np.nan], [1, 1]], np.float32), "1 of 2 rows hold numbers that are not finite"),
        (np.array([[0, np.inf], [-np.inf, 1]], np.float32), "2 of 2 rows hold numbers that are not finite"),
        (np.array([[3, 4], [30, 40]], np.float32), "row norm 50 exceeds the largest allowed, 10"),
        (np.full((2, 2), 3e38, np.float32), "row norm 4.24e+38 exceeds the largest allowed, 10"),
        (np.array([[6, 8], [0, 0]], np.float32), None),
    ],
)
def test_complaints(rows, reason):
    assert complaint(rows, (2, 2), 10.0) == reason


def test_an_empty_table_is_fine():
    assert complaint(np.zeros((0, 2), np.float32), (0, 2), 10.0) is None


def shares(weights):
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def test_a_claim_without_measure_does_not_take_over_the_mean():
    """It was believed once: one client that claimed 2**53 - 1 triples was the mean."""
    everyone = {name: np.arange(100) for name in ("a", "b", "c", "d")}
    honest = {"b": 300, "c": 320, "d": 400}
    found = believable_weights({"a": 2**53 - 1, **honest}, [everyone])
    assert {name: found[name] for name in honest} == {name: float(claim) for name, claim in honest.items()}
    assert found["a"] == 4 * 320
    assert shares(found)["a"] < 0.6


def test_rows_that_nobody_else_owns_do_not_raise_a_bound():
    owners = {"a": np.arange(1_000_000), "b": np.arange(100), "c": np.arange(100)}
    assert believable_weights({"a": 10**12, "b": 300, "c": 300}, [owners])["a"] == 4 * 300


def test_rows_of_all_tables_count():
    entities = {"a": np.arange(10), "b": np.arange(10)}
    relations = {"a": np.arange(5), "b": np.arange(5)}
    assert believable_weights({"a": 10**6, "b": 15}, [entities, relations]) == {"a": 60.0, "b": 15.0}


def test_a_client_with_no_row_in_common_keeps_its_claim_and_bounds_nobody():
    owners = {"a": np.arange(10), "b": np.arange(10), "c": np.arange(10, 12)}
    assert believable_weights({"a": 30, "b": 30, "c": 10**9}, [owners]) == {"a": 30.0, "b": 30.0, "c": 1e9}
    assert believable_weights({"c": 7}, [{"c": np.arange(2)}]) == {"c": 7.0}


@given(federations(), st.integers(1, 10**6), st.data())
def test_claims_of_like_density_count_as_they_are(federation, density, data):
    """Where nothing is capped, the mean is the same as before, bit for bit."""
    _, _, owners, _ = federation
    counts = np.bincount(np.concatenate(list(owners.values())), minlength=1)
    claims = {
        name: int((counts[rows] > 1).sum()) * density * data.draw(st.integers(1, 4)) for name, rows in owners.items()
    }
    assert believable_weights(claims, [owners]) == {name: float(claim) for name, claim in claims.items()}


@dataclass(frozen=True)
class Largest:
    """A stranger's rule: each number is the largest that an owner uploaded."""

    name: ClassVar[str] = "largest"
    uses_claims: ClassVar[bool] = False

    def aggregate(self, table, uploads, owners, claims):  # noqa: ARG002
        result = np.full_like(table, -np.inf)
        for name, rows in uploads.items():
            result[owners[name]] = np.maximum(result[owners[name]], rows)
        return np.where(np.isinf(result), table, result)


def test_a_registered_aggregation_is_what_the_server_uses(shards, monkeypatch):
    monkeypatch.setitem(AGGREGATIONS, Largest.name, Largest)
    configuration = short()
    server = Server(
        EmbeddedEngine(make_clients(shards.graphs, configuration), threads=1),
        ServerPlan(shape_of(configuration), seed=5, aggregation=make_aggregation("largest")),
    )
    before, report = server.tables["entities"], server.run_round()
    rows = {name: upload.rows["entities"] for name, upload in report.uploads.items()}
    expected = Largest().aggregate(before, rows, server.owners["entities"], {})
    assert np.array_equal(server.tables["entities"], expected)
    assert not np.array_equal(expected, average(before, rows, server.owners["entities"], dict.fromkeys(rows, 1.0)))


def test_an_unknown_aggregation_names_the_near_ones():
    with pytest.raises(ConfigurationError, match="unknown aggregation 'wieghted': did you mean weighted"):
        make_aggregation("wieghted")


def test_doubts_are_told_only_where_claims_count(shards):
    configuration = short()
    for name, told in (("mean", False), ("weighted", True)):
        clients = make_clients(shards.graphs, configuration)
        plan = ServerPlan(shape_of(configuration), seed=5, aggregation=make_aggregation(name))
        server = Server(EmbeddedEngine(clients, threads=1), plan)
        server.weights = dict.fromkeys(server.weights, 0.5)
        assert bool(server.doubted) is told
