"""The utility of the model: metrics.jsonl of this run, and of runs beside it, against the controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fedkge.base.numbers import share, signed
from fedkge.configuration import Configuration
from fedkge.report.document import Utility, UtilityRow
from fedkge.report.wording import NOT_RANKED
from fedkge.runs.directory import RunDirectory
from fedkge.runs.released import is_defended

PRIVATE_CONTROL = "popularity, epsilon 1"

Record = Mapping[str, Any]


def gather_utility(run: Path, configuration: Configuration, beside: Sequence[Path] = ()) -> Utility:
    """Tail, head and both, of the run and its clients, the controls, and other runs."""
    record = _test_record(run)
    if record is None:
        return Utility(NOT_RANKED, None, (), None, "")
    rows = [_row(_label(configuration), "run", record, _triples(record))]
    if len(record["clients"]) > 1:
        rows += [_row(name, "client", part, part["triples"]) for name, part in record["clients"].items()]
    rows += _controls(record)
    rows += [row for path in beside for row in _beside(path, configuration)]
    control = next((row for row in rows if row.name == PRIVATE_CONTROL), None)
    gain = None if control is None else rows[0].both - control.both
    return Utility("", record["round"], tuple(rows), gain, _sentence(rows[0], control))


def _test_record(run: Path) -> Record | None:
    records = RunDirectory(run).read_metrics()
    return records[-1] if records and records[-1]["split"] == "test" else None


def _triples(record: Record) -> int:
    return sum(int(part["triples"]) for part in record["clients"].values())


def _row(
    name: str, kind: Literal["run", "client", "control", "beside"], metrics: Record, triples: int, note: str = ""
) -> UtilityRow:
    tail, head, both = (metrics[f"{side}.realistic.mrr"] for side in ("tail", "head", "both"))
    return UtilityRow(name, kind, triples, tail, head, both, metrics["both.realistic.hits_at_10"], note)


def _controls(record: Record) -> list[UtilityRow]:
    from fedkge.evaluation.ranks import weighted_metrics  # noqa: PLC0415 (heavy)

    clients = list(record["clients"].values())
    names = clients[0]["controls"] if clients else ()
    return [
        _row(
            name,
            "control",
            weighted_metrics([(part["triples"], part["controls"][name]) for part in clients]),
            _triples(record),
        )
        for name in names
    ]


def _beside(path: Path, configuration: Configuration) -> list[UtilityRow]:
    other, _ = RunDirectory(path).read_configuration()
    record = _test_record(path)
    if record is None:
        return []
    keys = ("data", "clients", "split", "overlap", "seed")
    changed = [key for key in keys if other.option(key) != configuration.option(key)]
    if changed == ["seed"] and other.data.clients == 1:
        changed = []
    note = f"not comparable: other {' and '.join(changed)}" if changed else ""
    return [_row(f"{_label(other)} ({path.name})", "beside", record, _triples(record), note)]


def _label(configuration: Configuration) -> str:
    """The run in a few words: strategy, and defence with its budget."""
    names = {"isolated": "no federation", "pooled": "all data in one place"}
    way = names.get(configuration.federation.strategy, configuration.federation.strategy)
    if not is_defended(configuration):
        return f"{configuration.model.name}, {way}" + (
            "" if configuration.federation.strategy == "isolated" else ", no defence"
        )
    budget = "" if configuration.privacy.epsilon is None else f" at epsilon {configuration.privacy.epsilon:g}"
    return f"{configuration.model.name}, {way}, {configuration.privacy.defence}{budget}"


def _sentence(run: UtilityRow, control: UtilityRow | None) -> str:
    if control is None:
        return "The run has no popularity control to compare with."
    gain = run.both - control.both
    if gain <= 0:
        return (
            f"The model does not rank better than counting: both-sided MRR {share(run.both)}, against "
            f"{share(control.both)} for noisy counting. It does not justify a privacy cost."
        )
    return (
        f"Both-sided MRR {share(run.both)}. This is {signed(gain)} against noisy counting of names at epsilon 1 "
        f"({share(control.both)}), which needs no model."
    )
