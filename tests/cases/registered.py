"""Every registry, the case that its names must pass, and the module with one class for each name."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import fedkge
from fedkge.accounting.accountants import ACCOUNTANTS
from fedkge.attacks import ATTACKS
from fedkge.defences import DEFENCES
from fedkge.federation.aggregation import AGGREGATIONS
from fedkge.mechanisms import SCHEDULES, SELECTIONS
from fedkge.models import MODELS
from fedkge.models.optimisers import OPTIMISERS
from fedkge.runs.strategies import STRATEGIES
from tests.cases import Case
from tests.cases.accountants import AccountantCase
from tests.cases.aggregations import AggregationCase
from tests.cases.attacks import AttackCase
from tests.cases.defences import DefenceCase
from tests.cases.engines import EngineCase
from tests.cases.models import ModelCase
from tests.cases.optimisers import OptimiserCase
from tests.cases.schedules import ScheduleCase
from tests.cases.selections import SelectionCase
from tests.cases.strategies import StrategyCase

SOURCES = Path(fedkge.__file__).parent


@dataclass(frozen=True)
class Kind:
    """Things that are chosen by name."""

    registry: str
    """What the registry is called in the source, in upper case; what has none is in lower case."""
    names: Collection[str]
    case: type[Case]
    module: str
    """Where the classes are that name one each."""


def engines() -> set[str]:
    """Engines are not chosen by name: these are all classes that can carry messages."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "Protocol" not in {ast.unparse(base) for base in node.bases}:
                methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                found |= {node.name} if {"clients", "exchange"} <= methods else set()
    return found


KINDS = (
    Kind("ACCOUNTANTS", ACCOUNTANTS, AccountantCase, "tests.accounting.test_accountants"),
    Kind("AGGREGATIONS", AGGREGATIONS, AggregationCase, "tests.federation.test_aggregation"),
    Kind("ATTACKS", ATTACKS, AttackCase, "tests.attacks.test_attack"),
    Kind("DEFENCES", DEFENCES, DefenceCase, "tests.defences.test_every_defence"),
    Kind("engines", engines(), EngineCase, "tests.federation.test_every_engine"),
    Kind("MODELS", MODELS, ModelCase, "tests.models.test_every_model"),
    Kind("OPTIMISERS", OPTIMISERS, OptimiserCase, "tests.models.test_optimisers"),
    Kind("SCHEDULES", SCHEDULES, ScheduleCase, "tests.mechanisms.test_schedules"),
    Kind("SELECTIONS", SELECTIONS, SelectionCase, "tests.mechanisms.test_selection"),
    Kind("STRATEGIES", STRATEGIES, StrategyCase, "tests.federation.test_strategies"),
)
