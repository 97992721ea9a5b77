"""Each aggregation by name, with its rule; then averaging itself, complaints about uploads, and claimed weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError
from fedkge.federation.aggregation import AGGREGATIONS, average, make_aggregation
from fedkge.federation.claimed_weights import believable_weights
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.server import Server, ServerPlan
from fedkge.federation.upload_checks import complaint
from fedkge.runs.run import shape_of
from tests.cases.aggregations import AggregationCase, rows_at_once, uploads_of_a_round
from tests.short_runs import make_clients, short

__all__ = ["rows_at_once"]


class TestMean(AggregationCase):
    name = "mean"

    def rule(self, numbers: Sequence[float], claims: Sequence[float]) -> float:  # noqa: ARG002
        return sum(numbers) / len(numbers)


class TestWeightedMean(AggregationCase):
    name = "weighted"

    def rule(self, numbers: Sequence[float], claims: Sequence[float]) -> float:
        weighted = (claim * number for claim, number in zip(claims, numbers, strict=True))
        return sum(weighted) / sum(claims)


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


@given(uploads_of_a_round(), st.integers(1, 10**6), st.data())
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
