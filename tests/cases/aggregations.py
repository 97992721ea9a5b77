"""What every aggregation must do: equal its rule row by row, ignore the order of answers, leave the rest alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedkge.federation.aggregation import AGGREGATIONS, Aggregation, make_aggregation
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.server import Server, ServerPlan
from fedkge.graph import Graph
from fedkge.graph.split import Shards
from fedkge.runs.run import shape_of
from tests.cases import Case
from tests.short_runs import make_clients, short

FLOATS = st.floats(-1000, 1000, width=32)


@st.composite
def uploads_of_a_round(draw: Any) -> Any:
    """A table, and for some clients the rows that each owns and uploads, and how many triples it counts for."""
    size, width = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    table = draw(arrays(np.float32, (size, width), elements=FLOATS))
    owners, uploads, claims = {}, {}, {}
    for number in range(draw(st.integers(1, 5))):
        places = draw(st.lists(st.integers(0, size - 1), unique=True))
        owners[f"client-{number}"] = np.array(places, dtype=np.int64)
        uploads[f"client-{number}"] = draw(arrays(np.float32, (len(places), width), elements=FLOATS))
        claims[f"client-{number}"] = float(draw(st.integers(1, 10**6)))
    return table, uploads, owners, claims


def row_by_row(rule: Any, table: Any, uploads: Any, owners: Any, claims: Any) -> Any:
    """One row and one column at a time, by a rule over the numbers of the owners."""
    result = table.copy()
    for row, column in np.ndindex(*table.shape):
        holders = [(name, list(owners[name]).index(row)) for name in sorted(uploads) if row in owners[name]]
        if holders:
            numbers = [float(uploads[name][place, column]) for name, place in holders]
            result[row, column] = np.float32(rule(numbers, [claims[name] for name, _ in holders]))
    return result


class AggregationCase(Case):
    """A registered aggregation. A subclass names it and says what it makes of the numbers of one cell."""

    def rule(self, numbers: Sequence[float], claims: Sequence[float]) -> float:
        """What the owners' numbers become; `claims` are how many triples each of them counts for."""
        raise NotImplementedError

    def make(self) -> Aggregation:
        return make_aggregation(self.name)

    def test_the_registry_builds_what_it_names(self) -> None:
        assert type(self.make()) is AGGREGATIONS[self.name]
        assert self.make().name == self.name

    @given(uploads_of_a_round())
    def test_equals_its_rule_row_by_row(self, given_round: Any) -> None:
        np.testing.assert_array_equal(self.make().aggregate(*given_round), row_by_row(self.rule, *given_round))

    @given(uploads_of_a_round(), st.randoms(use_true_random=False))
    def test_order_of_answers_does_not_matter(self, given_round: Any, random: Any) -> None:
        table, uploads, owners, claims = given_round
        shuffled = list(uploads.items())
        random.shuffle(shuffled)
        found = self.make().aggregate(table, dict(shuffled), owners, claims)
        assert found.tobytes() == self.make().aggregate(*given_round).tobytes()

    @given(
        arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)),
        st.lists(st.integers(1, 10**9), min_size=1, max_size=6),
    )
    def test_equal_rows_become_that_row_bit_for_bit(self, rows: Any, counts: list[int]) -> None:
        names = [f"client-{number}" for number in range(len(counts))]
        claims = {name: float(count) for name, count in zip(names, counts, strict=True)}
        uploads, owners = dict.fromkeys(names, rows), dict.fromkeys(names, np.arange(3))
        result = self.make().aggregate(np.ones_like(rows), uploads, owners, claims)
        assert result.tobytes() == rows.tobytes()

    @given(uploads_of_a_round())
    def test_rows_that_nobody_uploaded_stay_and_the_input_is_left_alone(self, given_round: Any) -> None:
        table, uploads, owners, _ = given_round
        before, sent = table.tobytes(), {name: rows.tobytes() for name, rows in uploads.items()}
        result = self.make().aggregate(*given_round)
        lonely = sorted(set(range(len(table))) - {int(place) for name in uploads for place in owners[name]})
        assert result[lonely].tobytes() == table[lonely].tobytes()
        assert table.tobytes() == before
        assert {name: rows.tobytes() for name, rows in uploads.items()} == sent
        assert result.dtype == np.float32
        assert result.shape == table.shape

    @given(uploads_of_a_round(), st.integers(2, 9))
    def test_claims_change_the_result_only_if_it_says_so(self, given_round: Any, factor: int) -> None:
        table, uploads, owners, claims = given_round
        others = {name: claim * factor**number for number, (name, claim) in enumerate(claims.items())}
        if not self.make().uses_claims:
            found = self.make().aggregate(table, uploads, owners, others)
            assert found.tobytes() == self.make().aggregate(*given_round).tobytes()

    def test_the_server_aggregates_with_it(self, shards: Shards) -> None:
        server = self.server(shards)
        before, report = server.tables["entities"], server.run_round()
        rows = {name: upload.rows["entities"] for name, upload in report.uploads.items()}
        expected = self.make().aggregate(before, rows, server.owners["entities"], server.weights)
        assert np.array_equal(server.tables["entities"], expected)

    def test_doubtful_claims_are_reported_only_where_claims_count(self, shards: Shards) -> None:
        server = self.server(shards)
        server.weights = dict.fromkeys(server.weights, 0.5)
        assert bool(server.doubted) is self.make().uses_claims

    @pytest.mark.parametrize("state", ["reset", "kept"])
    def test_two_identical_clients_equal_one_bit_for_bit(self, graph: Graph, state: str) -> None:
        configuration = short(optimiser_state=state)
        plan = ServerPlan(shape_of(configuration), seed=5, aggregation=self.make())
        servers = []
        for count in (1, 2):
            clients = make_clients([graph] * count, configuration, numbers=[0] * count)
            server = Server(EmbeddedEngine(clients, threads=count), plan)
            for _ in range(4):
                server.run_round()
            servers.append((server, clients))
        (one, lonely), (two, pair) = servers
        assert one.tables["entities"].tobytes() == two.tables["entities"].tobytes()
        expected = {name: tensor.tobytes() for name, tensor in lonely["client-0"]._lasting().items()}
        for client in pair.values():
            assert {name: tensor.tobytes() for name, tensor in client._lasting().items()} == expected

    def server(self, shards: Shards) -> Server:
        configuration = short()
        clients = make_clients(shards.graphs, configuration)
        plan = ServerPlan(shape_of(configuration), seed=5, aggregation=self.make())
        return Server(EmbeddedEngine(clients, threads=1), plan)


@pytest.fixture(autouse=True, scope="module", params=[1, 4, 4096])
def rows_at_once(request: pytest.FixtureRequest) -> Any:
    """Small blocks too, so that small tables have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedkge.federation.aggregation.ROWS_AT_ONCE", request.param)
        yield
