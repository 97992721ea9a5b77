"""Every registry, the case that its names must pass, and the module with one class for each name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fedkge.federation.aggregation import AGGREGATIONS
from fedkge.models import MODELS
from fedkge.models.optimisers import OPTIMISERS
from tests.cases import Case
from tests.cases.aggregations import AggregationCase
from tests.cases.models import ModelCase
from tests.cases.optimisers import OptimiserCase


@dataclass(frozen=True)
class Kind:
    """Things that are chosen by name."""

    registry: str
    """What the registry is called in the source."""
    names: Collection[str]
    case: type[Case]
    module: str
    """Where the classes are that name one each."""


KINDS = (
    Kind("AGGREGATIONS", AGGREGATIONS, AggregationCase, "tests.federation.test_aggregation"),
    Kind("MODELS", MODELS, ModelCase, "tests.models.test_every_model"),
    Kind("OPTIMISERS", OPTIMISERS, OptimiserCase, "tests.models.test_optimisers"),
)
