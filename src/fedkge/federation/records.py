"""What a run writes down of its rounds: lines of metrics.jsonl, and what observers hear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedkge.evaluation import Evaluation
from fedkge.federation.messages import RankingMetrics
from fedkge.federation.server import RoundReport, weighted_mean


def evaluation_record(
    round_number: int, split: str, scores: Mapping[str, RankingMetrics], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """One line of metrics.jsonl: the mean over clients, `facts` of the run so far, and every client by itself.

    >>> evaluation_record(3, "test", {"client-0": RankingMetrics(2, {"mrr": 0.5})}, {"bytes_up": 8})["mrr"]
    0.5
    """
    return {
        "round": round_number,
        "split": split,
        **weighted_mean(scores),
        **facts,
        "clients": {
            name: {"triples": score.triples, **score.metrics, "controls": dict(score.controls)}
            for name, score in scores.items()
        },
    }


def with_left_out(record: dict[str, Any], evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """The record, and for each client how many triples were left out of its score because somebody trains on them."""
    for name, evaluation in evaluations.items():
        if evaluation.left_out:
            record["clients"][name]["left_out"] = evaluation.left_out
    return record


def round_facts(report: RoundReport, seconds: float) -> dict[str, Any]:
    """One round as observers hear of it."""
    return {
        "round": report.round,
        "loss": report.loss,
        "seconds": seconds,
        "refused": dict(report.refused),
        "bytes_up": dict(report.bytes_up),
        "bytes_down": dict(report.bytes_down),
    }
