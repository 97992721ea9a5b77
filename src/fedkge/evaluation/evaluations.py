"""The evaluations of all clients: one table of the model beside the controls, for all clients and for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedkge.base.tabular import ByClient, Row
from fedkge.evaluation.evaluate import Evaluation
from fedkge.evaluation.ranks import weighted_metrics

ALL = "all"
"""The row of all clients together, each weighted by its triples."""
MODEL = "model"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluations(ByClient[Evaluation]):
    """How well each client's held-out triples are ranked: a mapping from client to Evaluation, and a table.

    `to_frame()` has a row for the model and for each control, of all clients and of each. Metrics are filtered and
    realistic (see `Ranking.metrics`).

    >>> from fedkge.evaluation import Popularity, evaluate
    >>> from fedkge.graph import Graph
    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b"), ("c", "r", "b")], test=[("b", "r", "a")])
    >>> found = evaluate(Popularity.count(graph.train, entities=3), graph, threads=1, controls=False)
    >>> Evaluations({"client-0": found})
    Filtered ranking of 1 test triples, 1 client
    client    scores  triples  tail MRR  head MRR  both MRR  Hits@10
    client-0  model         1       0.4    0.3333    0.3667        1
    """

    clients: Mapping[str, Evaluation]

    shown: ClassVar[Mapping[str, str]] = {
        "client": "client",
        "scores": "scores",
        "triples": "triples",
        "tail.realistic.mrr": "tail MRR",
        "head.realistic.mrr": "head MRR",
        "both.realistic.mrr": "both MRR",
        "both.realistic.hits_at_10": "Hits@10",
    }

    def title(self) -> str:
        """What was ranked."""
        triples = sum(len(one.ranking) for one in self.values())
        split = "".join(f" {name}" for name in sorted({one.split for one in self.values()}))
        return f"Filtered ranking of {triples:,}{split} triples, {len(self)} client{'' if len(self) == 1 else 's'}"

    def rows(self) -> list[Row]:
        """Of all clients (where there are several) and of each: the model, then each control."""
        parts = {name: (len(one.ranking), one.table(MODEL)) for name, one in self.items()}
        tables = dict(parts)
        if len(parts) > 1:
            scores = next(iter(parts.values()))[1]
            together = {
                name: weighted_metrics([(triples, table[name]) for triples, table in parts.values()]) for name in scores
            }
            tables = {ALL: (sum(triples for triples, _ in parts.values()), together), **parts}
        return [
            {"client": client, "scores": name, "triples": triples, **metrics}
            for client, (triples, table) in tables.items()
            for name, metrics in table.items()
        ]

    def record(self) -> dict[str, Any]:
        """Metrics of all clients and of each, in the form of a metrics.jsonl line."""
        clients = {
            name: {
                "triples": len(one.ranking),
                **one.metrics(),
                "controls": {control: ranking.metrics() for control, ranking in one.controls.items()},
                **({"left_out": one.left_out} if one.left_out else {}),
            }
            for name, one in self.items()
        }
        parts = [(len(one.ranking), one.metrics()) for one in self.values()]
        return {**weighted_metrics(parts), "clients": clients}

    def by_relation(self) -> list[dict[str, Any]]:
        """One row per relation, the most frequent first; clients are weighted by their triples."""
        parts: dict[str, list[tuple[int, dict[str, float]]]] = defaultdict(list)
        for one in self.values():
            for row in one.ranking.by_relation(one.graph):
                numbers = {"tail_mrr": row.tail_mrr, "head_mrr": row.head_mrr, "both_mrr": row.both_mrr}
                parts[row.relation].append((row.triples, numbers))
        counted = [(sum(count for count, _ in found), relation, found) for relation, found in parts.items()]
        counted.sort(key=lambda each: -each[0])
        return [
            {"relation": relation, "triples": triples, **weighted_metrics(found)}
            for triples, relation, found in counted
        ]
