"""Checks that a configuration names existing things, before any file is read or written."""

from __future__ import annotations

from fedkge.base.registry import look_up
from fedkge.configuration import Configuration
from fedkge.defences import check_defence
from fedkge.federation.aggregation import make_aggregation
from fedkge.models.optimisers import OPTIMISERS
from fedkge.runs.run import scorer_of
from fedkge.runs.strategies import strategy_of
from fedkge.runs.transcript import recorded_rounds


def check_training(configuration: Configuration) -> None:
    """Refuse a model, strategy, aggregation, optimiser, record or defence that does not exist.

    >>> check_training(Configuration.of(model="transe"))
    """
    scorer_of(configuration)
    strategy_of(configuration)
    make_aggregation(configuration.federation.aggregation)
    look_up(OPTIMISERS, configuration.training.optimiser, "optimiser")
    recorded_rounds(configuration.experiment.record, configuration.training.rounds)
    check_defence(configuration)
