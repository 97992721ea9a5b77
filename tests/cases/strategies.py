"""What every strategy must do: share the tables that it names and no others, and repeat itself on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fedkge.api.training import resume, start
from fedkge.federation.training import Federation
from fedkge.graph.split import Shards
from fedkge.runs.run import Run
from fedkge.runs.strategies import make_strategy
from tests.cases import Case
from tests.short_runs import break_off, short

RUNS: dict[str, Run] = {}
"""One for each strategy; its tests only read it."""


class StrategyCase(Case):
    """A registered strategy. A subclass names it and says which tables the clients share."""

    shared: ClassVar[tuple[str, ...]]
    clients: ClassVar[int] = 3
    """Of three shards."""

    def options(self) -> dict[str, Any]:
        return {"strategy": self.name}

    @pytest.fixture
    def run(self, shards: Shards) -> Run:
        if self.name not in RUNS:
            RUNS[self.name] = self.trained(shards)
        return RUNS[self.name]

    def trained(self, shards: Any, **options: Any) -> Run:
        return Federation(tuple(shards), short(**self.options(), **options)).run()

    def test_the_server_holds_what_is_shared(self, shards: Shards) -> None:
        federation = Federation(tuple(shards), short(**self.options()))
        assert make_strategy(self.name).shared == self.shared
        assert tuple(federation.server.tables) == self.shared
        assert list(federation.clients) == [f"client-{number}" for number in range(self.clients)]

    def test_uploads_hold_the_shared_tables_alone(self, shards: Shards) -> None:
        federation = Federation(tuple(shards), short(**self.options()))
        for upload in federation.server.run_round().uploads.values():
            assert tuple(upload.rows) == self.shared

    def test_bytes_are_those_of_the_shared_rows(self, run: Run, shards: Shards) -> None:
        rounds, width = 3, 8 * 4
        clients = Federation(tuple(shards), short(**self.options())).clients.values()
        rows = sum(len(getattr(client.shard, table)) for client in clients for table in self.shared)
        assert run.metrics[-1]["bytes_up"] == rounds * width * rows

    def test_the_model_has_every_row_of_every_client(self, run: Run) -> None:
        """One table of entities where it is shared, else one for each client."""
        names = [f"client-{number}" for number in range(3)]
        own = {f"entities/{client}" for client in names}
        assert ("entities" in run.tensors) is ("entities" in self.shared)
        assert (own <= set(run.tensors)) is ("entities" not in self.shared)
        assert {f"relations/{client}" for client in names} <= set(run.tensors)
        assert all(np.isfinite(tensor).all() for tensor in run.tensors.values())

    def test_the_number_of_threads_changes_nothing(self, run: Run, shards: Shards) -> None:
        other = self.trained(shards, threads=2)
        same_bits(run, other)
        assert run.metrics == other.metrics

    def test_seeds_matter(self, run: Run, shards: Shards) -> None:
        same_bits(run, self.trained(shards))
        other = self.trained(shards, seed=6)
        assert any(run.tensors[name].tobytes() != other.tensors[name].tobytes() for name in run.tensors)

    def test_a_run_that_is_cut_off_ends_with_the_same_bits(self, run: Run, shards: Shards, tmp_path: Path) -> None:
        configuration = short(**self.options())
        break_off(configuration, shards, tmp_path / "run", rounds=2)
        same_bits(resume(tmp_path / "run", data=shards), start(configuration, shards.graphs))
        same_bits(run, start(configuration, shards.graphs))


def same_bits(one: Run, other: Run) -> None:
    assert set(one.tensors) == set(other.tensors)
    for name, tensor in one.tensors.items():
        assert tensor.tobytes() == other.tensors[name].tobytes(), name
