"""A promise is a guarantee only if every fact is there and known: what is missing or unknown is never private."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fedkge.accounting.facts import (
    Advance,
    CountFacts,
    Described,
    Facts,
    Neighbours,
    NoisyCopy,
    Payment,
    PublicStart,
    SeededNoise,
)
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.ledger_lines import sealed
from fedkge.accounting.promises import Promise
from fedkge.accounting.validity import FaultKind, faults
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.mechanisms.events import Charge, SampledGaussian
from fedkge.report.promise_words import FAULTS, NEIGHBOURS, PAYMENTS, fact_rows, mechanism_sentence, promise_line
from tests.accounting.complete import FACTS, FILTERED, PLAN, STEPS

COUNTED = replace(FACTS, mechanism=replace(STEPS, counts=CountFacts(profile_scale=1.0, typed_scale=2.0, types=8)))
COPIED = replace(
    FACTS,
    mechanism=NoisyCopy(count_scale=0.5, response_epsilon=0.2),
    plan=replace(PLAN, payment=Payment.FIRST_ROUND),
    start=PublicStart(vectors="vectors.txt"),
)
DESCRIBED = replace(
    FACTS, mechanism=Described(name="new", proof="proofs/new.md", settings=(("size", 3), ("by", "row")))
)
COMPLETE = {"steps": FACTS, "filtered": FILTERED, "counts": COUNTED, "copy": COPIED, "described": DESCRIBED}
OPTIONAL = {"counts", "validation_every", "settings"}
"""Facts whose absence says something: nothing was counted, noise does not follow validation, nothing else to say."""


def promise_of(facts: Facts, **changes: Any) -> Promise:
    charges = (Charge(SampledGaussian(0.01, 1.0), 10),)
    return Promise("client-0", **{"delta": 1e-5, "epsilon": 8.0, "largest_round": charges, "facts": facts, **changes})


def places(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each value in nested dictionaries."""
    for key, value in record.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def changed(record: dict[str, Any], path: tuple[str, ...], value: Any = None, remove: bool = False) -> dict[str, Any]:
    made = copy.deepcopy(record)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if remove:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def not_private(record: dict[str, Any], folder: Path) -> bool:
    """Whether a ledger with this promise is refused, or read as one that guarantees nothing."""
    path = folder / "ledger.jsonl"
    path.write_bytes(sealed({"kind": "promise", **record}, "")[0])
    try:
        found = Ledger.read(path)
    except PrivacyError:
        return True
    return bool(faults(found.promises["client-0"]))


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_promise_is_private(name: str, tmp_path: Path) -> None:
    promise = promise_of(COMPLETE[name])
    assert faults(promise) == ()
    assert Promise.of_record(json.loads(json.dumps(promise.record()))) == promise
    assert not not_private(promise.record(), tmp_path)


@pytest.mark.parametrize("name", COMPLETE)
def test_a_promise_without_one_of_its_facts_is_not_private(name: str, tmp_path: Path) -> None:
    record = promise_of(COMPLETE[name]).record()
    tried = [path for path in places(record) if path[-1] not in OPTIONAL and path[0] != "client"]
    assert len(tried) > 15
    for path in tried:
        assert not_private(changed(record, path, remove=True), tmp_path), path


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.parametrize("value", ["invented", -1, {"type": "invented"}, [], 0.0])
def test_a_fact_that_nobody_knows_is_not_private(name: str, value: Any, tmp_path: Path) -> None:
    record = promise_of(COMPLETE[name]).record()
    free = {"client", "defence", "vectors", "name", "proof", "settings", "largest_round"}
    """Words of a person, settings of an extension, and a round that costs nothing."""
    for path in places(record):
        if path[-1] not in free or not isinstance(value, str | list):
            assert not_private(changed(record, path, value), tmp_path) or path == ("facts", "data"), path


@pytest.mark.parametrize("path", [("new",), ("facts", "new"), ("facts", "mechanism", "new"), ("facts", "plan", "new")])
def test_a_fact_that_this_version_does_not_know_is_refused(path: tuple[str, ...], tmp_path: Path) -> None:
    assert not_private(changed(promise_of(FACTS).record(), path, "value"), tmp_path)


def test_a_promise_in_python_is_checked_as_one_in_a_file() -> None:
    for wrong in (
        {"names": "invented"},
        {"plan": 3},
        {"mechanism": "noisy-copy"},
        {"noise_source": "operating-system"},
    ):
        with pytest.raises(ConfigurationError, match="facts of a promise"):
            promise_of(replace(FACTS, **wrong))
    with pytest.raises(ConfigurationError, match="facts of a promise"):
        promise_of(FACTS, neighbours="invented")
    assert [fault.kind for fault in faults(Promise("client-0", delta=1e-5))] == [FaultKind.MISSING_FACT]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"facts": replace(FACTS, noise_source=SeededNoise(seed=0))}, FaultKind.RESEARCH_SEED),
        ({"facts": replace(FACTS, mechanism=replace(STEPS, selection="new"))}, FaultKind.UNKNOWN_SELECTION),
        ({"facts": replace(FACTS, mechanism=replace(STEPS, selection="ptr-published"))}, FaultKind.PUBLISHED_SELECTION),
        ({"facts": replace(FACTS, mechanism=replace(STEPS, schedule="new"))}, FaultKind.UNKNOWN_SCHEDULE),
        ({"facts": replace(FACTS, plan=replace(PLAN, payment=Payment.FIRST_ROUND))}, FaultKind.WRONG_PAYMENT),
        ({"facts": replace(COPIED, plan=replace(PLAN, payment=Payment.WHOLE_BUDGET))}, FaultKind.WRONG_PAYMENT),
        ({"facts": replace(COPIED, plan=PLAN)}, FaultKind.WRONG_PAYMENT),
        ({"facts": FILTERED, "epsilon": None}, FaultKind.NO_BUDGET),
        ({"facts": replace(FACTS, mechanism=Described(name="new", proof=" "))}, FaultKind.NO_PROOF),
        ({"facts": FACTS, "accountant": "published"}, FaultKind.UNSOUND_ACCOUNTANT),
        ({"facts": FACTS, "neighbours": Neighbours.REPLACE_TRIPLE}, FaultKind.OTHER_NEIGHBOURS),
    ],
)
def test_each_fault_is_found_and_said(changes: dict[str, Any], kind: FaultKind) -> None:
    promise = promise_of(**changes)
    assert [fault.kind for fault in faults(promise)] == [kind]
    assert promise_line(promise).startswith("NOT PRIVATE: ")


def test_what_is_released_before_the_promise_needs_no_plan() -> None:
    provisional = replace(FACTS, mechanism=Advance(), plan=None, start=None)
    assert faults(promise_of(provisional, largest_round=())) == ()
    for name in ("defence", "noise_source", "names"):
        assert faults(promise_of(replace(provisional, **{name: None}), largest_round=()))
    assert faults(promise_of(provisional)), "rounds under a promise that says nothing about them"


def test_every_code_has_words() -> None:
    assert (set(FAULTS), set(NEIGHBOURS), set(PAYMENTS)) == (set(FaultKind), set(Neighbours), set(Payment))


@pytest.mark.parametrize("name", COMPLETE)
def test_a_promise_is_put_into_words(name: str) -> None:
    facts = COMPLETE[name]
    assert promise_line(promise_of(facts)).startswith("epsilon 8 at delta 1e-05 (")
    assert mechanism_sentence(facts).startswith("noisy-steps: ")
    rows = dict(fact_rows(facts))
    assert {"defence", "rounds", "triples", "names", "noise source", "start"} <= set(rows)
    assert all(rows.values())
