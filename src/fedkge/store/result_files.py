"""The result files of a run directory: the type of each file, and one function that reads and checks it.

metrics.jsonl, attacks.json, exposed.json and audit.json are checked once, when they are read. Code that uses them can
rely on every key that is listed here. Other keys are kept and not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from fedkge.base.errors import FedkgeError, RunError
from fedkge.base.plain_files import read_json_lines, read_json_object

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Bound = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]

OPEN = ConfigDict(extra="allow")
CLOSED = ConfigDict(extra="forbid")

Metrics = TypedDict(
    "Metrics",
    {
        "tail.realistic.mrr": Number,
        "head.realistic.mrr": Number,
        "both.realistic.mrr": Number,
        "both.realistic.hits_at_1": Number,
        "both.realistic.hits_at_3": Number,
        "both.realistic.hits_at_10": Number,
        "both.realistic.amri": Number,
    },
)
"""The metrics of one ranking."""
Metrics.__pydantic_config__ = OPEN  # type: ignore[attr-defined]


@with_config(OPEN)
class ClientLine(Metrics):
    """One client's part of a line of metrics.jsonl."""

    triples: Count
    controls: dict[str, Metrics]
    left_out: NotRequired[Count]


@with_config(OPEN)
class MetricsLine(Metrics):
    """One line of metrics.jsonl."""

    round: Count
    split: str
    bytes_up: Count
    bytes_down: Count
    tests: NotRequired[dict[str, Any]]
    clients: dict[str, ClientLine]


@with_config(CLOSED)
class EstimateRecord(TypedDict):
    """An estimated share with its confidence interval."""

    value: Share
    low: Share
    high: Share


@with_config(CLOSED)
class RateRecord(TypedDict):
    """A true-positive rate at a false-positive rate."""

    fpr: Share
    value: Share | None
    low: Share | None
    high: Share | None
    reason: str


@with_config(OPEN)
class F1Record(TypedDict):
    """An F1 score."""

    value: Share


@with_config(OPEN)
class RocRecord(TypedDict):
    """The points of a ROC curve."""

    fpr: list[Share]
    tpr: list[Share]


def _whole_points(curve: RocRecord) -> RocRecord:
    if len(curve["fpr"]) != len(curve["tpr"]):
        raise ValueError(f"Input should have as many tpr as fpr, {len(curve['fpr'])}")
    return curve


@with_config(OPEN)
class AttackNumbers(TypedDict):
    """The results of one attack on one design at one round."""

    members: Positive
    non_members: Positive
    level: Inside
    auc: EstimateRecord
    tpr: list[RateRecord]
    best_f1: F1Record
    calibrated_f1: F1Record | None
    floor_f1: Share
    roc: NotRequired[Annotated[RocRecord, AfterValidator(_whole_points)]]


@with_config(CLOSED)
class OutcomeRecord(TypedDict):
    """One outcome in attacks.json."""

    attack: str
    adversary: str
    design: str
    round: Count
    metrics: AttackNumbers


@with_config(OPEN)
class PlanRecord(TypedDict):
    """How the attacks were planned."""

    seed: int | None


@with_config(CLOSED)
class RowsChangedRecord(TypedDict):
    """How many rows of an upload changed."""

    round: Count
    changed: Count
    known: Count


@with_config(OPEN)
class AttacksFile(TypedDict):
    """attacks.json."""

    plan: PlanRecord
    outcomes: list[OutcomeRecord]
    rows_changed: NotRequired[list[RowsChangedRecord]]


@with_config(OPEN)
class ExposedRecord(TypedDict):
    """The triples that one attack found."""

    attack: str
    design: str
    members: Count
    found: list[Annotated[list[str], Field(min_length=3, max_length=3)]]


@with_config(OPEN)
class ExposedFile(TypedDict):
    """exposed.json."""

    fpr: Share
    attacks: list[ExposedRecord]


@with_config(OPEN)
class FindingRecord(TypedDict):
    """One finding of an audit."""

    attack: str
    bound: Bound
    ceiling: Bound
    guesses: Positive
    right: Count
    gaussian_bound: Bound | None


@with_config(OPEN)
class GaussianRecord(TypedDict):
    """When the sharper bound holds."""

    holds: str


@with_config(OPEN)
class AuditFile(TypedDict):
    """audit.json."""

    round: NotRequired[Count | None]
    asked: NotRequired[Count | None]
    coins: str
    canaries: Positive
    inserted: Count
    delta: Share
    confidence: Inside
    comparisons: Count
    ceiling: Bound
    gaussian: GaussianRecord
    findings: list[FindingRecord]
    plans: list[dict[str, Any]]


_LINE: TypeAdapter[Any] = TypeAdapter(MetricsLine)
_ATTACKS: TypeAdapter[Any] = TypeAdapter(AttacksFile)
_EXPOSED: TypeAdapter[Any] = TypeAdapter(ExposedFile)
_AUDIT: TypeAdapter[Any] = TypeAdapter(AuditFile)

METRICS_AGAIN = "restore it from a copy, or finish the run again (`fedkge resume`)"
ATTACK_AGAIN = "attack the run again (`fedkge attack`)"
AUDIT_AGAIN = "audit again (`fedkge audit`)"


def check_shape(shape: TypeAdapter[Any], value: object, place: str, error: type[FedkgeError], remedy: str) -> None:
    """Refuse a value that does not have the shape. The error says where, what was expected and what was found.

    >>> check_shape(TypeAdapter(dict[str, int]), {"a": "b"}, "counts.json", RunError, "count again")
    Traceback (most recent call last):
    ...
    fedkge.base.errors.RunError: counts.json: a: Input should be a valid integer, got 'b'; count again
    """
    try:
        shape.validate_python(value, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "everything"
        got = "nothing" if first["type"] == "missing" else f"{first['input']!r:.60}"
        raise error(f"{place}: {where}: {first['msg']}, got {got}; {remedy}") from problem


def read_metrics_file(path: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl. The list is empty before the first evaluation, when there is no file.

    >>> read_metrics_file(Path("no-such-run", "metrics.jsonl"))
    []
    """
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return []
    lines: list[dict[str, Any]] = read_json_lines(path, RunError, METRICS_AGAIN)
    for number, line in enumerate(lines, start=1):
        check_shape(_LINE, line, f"{path}:{number}", RunError, METRICS_AGAIN)
        _check_controls(line["clients"], f"{path}:{number}")
    return lines


def _check_controls(clients: Mapping[str, Mapping[str, Any]], place: str) -> None:
    """Refuse controls that cannot be averaged: all clients need the same metrics, and together at least one triple."""
    parts = [part["controls"] for part in clients.values()]
    if any(parts) and not sum(part["triples"] for part in clients.values()):
        raise RunError(f"{place}: expected triples behind the controls, got none; {METRICS_AGAIN}")
    for part in parts:
        same = part.keys() == parts[0].keys() and all(part[name].keys() == parts[0][name].keys() for name in part)
        numbers = all(type(value) in (int, float) for metrics in part.values() for value in metrics.values())
        if not same or not numbers:
            raise RunError(f"{place}: expected the same numbers in the controls of all clients; {METRICS_AGAIN}")


def read_attacks_file(path: Path) -> dict[str, Any] | None:
    """The content of attacks.json; None if there is no such file."""
    return _read(path, _ATTACKS, ATTACK_AGAIN)


def read_exposed_file(path: Path) -> dict[str, Any] | None:
    """The content of exposed.json; None if there is no such file."""
    return _read(path, _EXPOSED, ATTACK_AGAIN)


def read_audit_file(path: Path) -> dict[str, Any] | None:
    """The content of audit.json; None if there is no such file."""
    return _read(path, _AUDIT, AUDIT_AGAIN)


def _read(path: Path, shape: TypeAdapter[Any], remedy: str) -> dict[str, Any] | None:
    if not path.exists():
        return None
    content = read_json_object(path, RunError, remedy)
    check_shape(shape, content, str(path), RunError, remedy)
    return content
