"""Each strategy by name; the tests are in `StrategyCase`."""

from __future__ import annotations

from typing import Any

from fedkge.graph.split import Shards
from fedkge.runs.run import Run
from tests.cases.strategies import StrategyCase


class TestFedE(StrategyCase):
    name = "fede"
    shared = ("entities",)


class TestFedR(StrategyCase):
    name = "fedr"
    shared = ("relations",)

    def options(self) -> dict[str, Any]:
        return {"strategy": "fedr", "optimiser_state": "kept"}

    def test_a_shared_relation_is_one_row_for_all(self, run: Run) -> None:
        rows: dict[int, bytes] = {}
        for client in run.clients:
            places, table = run.tensors[f"relation_ids/{client}"], run.tensors[f"relations/{client}"]
            for place, row in zip(places, table, strict=True):
                assert rows.setdefault(int(place), row.tobytes()) == row.tobytes()


class TestIsolated(StrategyCase):
    name = "isolated"
    shared = ()

    def test_clients_do_not_hear_of_each_other(self, run: Run, shards: Shards) -> None:
        first_two = self.trained(list(shards)[:2])
        for client in first_two.clients:
            assert run.tensors[f"entities/{client}"].tobytes() == first_two.tensors[f"entities/{client}"].tobytes()


class TestPooled(StrategyCase):
    name = "pooled"
    shared = ("entities",)
    clients = 1
