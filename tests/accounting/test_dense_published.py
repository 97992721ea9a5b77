"""The paper's baseline as printed: priced by its formula, and guaranteed by nobody."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.overwritten import overwritten_runs
from fedkge.accounting.promises import Promise
from fedkge.mechanisms.events import Charge, PublishedGaussian, SampledGaussian
from tests.accounting.complete import FACTS, STEPS

STEP = PublishedGaussian(rate=64 / 60_000, multiplier=1.0)


@pytest.mark.parametrize("name", ["pld", "rdp"])
def test_sound_accountants_answer_that_nothing_is_guaranteed(name: str) -> None:
    assert make_accountant(name).epsilon([Charge(STEP, 10)], 1e-5) == math.inf


def test_the_papers_formula_is_that_of_a_sampled_gaussian() -> None:
    published = make_accountant("published")
    same = SampledGaussian(STEP.rate, STEP.multiplier)
    assert published.epsilon([Charge(STEP, 900)], 1e-5) == published.epsilon([Charge(same, 900)], 1e-5)


def test_a_private_run_over_one_that_was_not_has_no_bound_together(tmp_path: Path) -> None:
    earlier = Ledger.open(tmp_path / "ledger-001.jsonl")
    facts = replace(FACTS, mechanism=replace(STEPS, selection="dense-published"))
    earlier.promise(
        Promise("client-0", delta=1e-5, accountant="published", largest_round=(Charge(STEP, 5),), facts=facts)
    )
    earlier.charge("client-0", 1, [Charge(STEP, 5)])
    now = Ledger.in_memory()
    private = (Charge(SampledGaussian(0.01, 2.0), 3),)
    now.promise(Promise("client-0", delta=1e-5, epsilon=8, largest_round=private))
    now.charge("client-0", 1, private)
    assert overwritten_runs(now, [tmp_path / "ledger-001.jsonl"])["client-0"].together == math.inf
