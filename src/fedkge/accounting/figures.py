"""Figures that were paid for, as a ledger holds them."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.accounting.ledger import Ledger
from fedkge.mechanisms.metrics import NoisyMean


@dataclass(frozen=True, slots=True)
class PaidMetric:
    """One client's mean reciprocal rank of a split, by the model of a round."""

    client: str
    split: str
    round: int
    mean: NoisyMean


def kept_metrics(ledger: Ledger) -> tuple[PaidMetric, ...]:
    """Every figure that was charged and kept.

    >>> kept_metrics(Ledger.in_memory())
    ()
    """
    found = [(client, extra, extra.value) for client in ledger.clients for extra in ledger.extras(client)]
    return tuple(
        PaidMetric(client, extra.name, value["round"], NoisyMean(value["total"], value["number"], extra.epsilon))
        for client, extra, value in found
        if value is not None
    )
