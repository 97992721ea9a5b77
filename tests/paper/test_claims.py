"""Every answer that is computed turns round when its numbers do, and waits for cells that are missing."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from paper.cells import Cell, Key
from paper.claims import ANSWERS, QUANTITIES, Claim, Vote, judged
from paper.document import gather
from paper.rules import Measured, Written, read_claims
from paper.settings import PARTS
from tests.paper.sample import FULL, Change, all_of, grid, metrics, ranks, struck

ROOT = Path(__file__).resolve().parents[2]
RULES, WRITTEN = read_claims().measured, read_claims().written
BILINEAR, DISTANCE = ("distmult", "complex"), ("transe", "rotate")
FLAMES, ADAPTIVE = ("dp-flames",), ("dp-flames-adaptive",)


def claims(change: Change | None = None) -> dict[str, Claim]:
    cells = grid()
    return {claim.name: claim for claim in gather(FULL, change(cells) if change else cells).claims}


@functools.cache
def before() -> dict[str, Claim]:
    return claims()


def exhausted(cells: dict[Key, Cell]) -> dict[Key, Cell]:
    return {key: replace(cell, exhausted=True) for key, cell in cells.items()}


def passing(cells: dict[Key, Cell]) -> dict[Key, Cell]:
    return {key: replace(cell, tests={"made": 10, "passed": 5} if cell.tests else {}) for key, cell in cells.items()}


def weak(*families: str, f1: float = 0.667, auc: float = 0.5) -> Change:
    return all_of(*(struck(family, f1, auc) for family in families))


def flat(cells: dict[Key, Cell]) -> dict[Key, Cell]:
    return weak("si", "cip", "cia", f1=0.8, auc=0.8)(cells)


def bilinear_server(cells: dict[Key, Cell]) -> dict[Key, Cell]:
    """SI played on bilinear models too, where it sees nothing."""
    source = {
        key.data: cell for key, cell in cells.items() if (key.model, key.defence) == ("transe", "none") and cell.attacks
    }

    def with_server(key: Key, cell: Cell) -> Cell:
        own = [one for one in source[key.data].attacks if one["attack"].startswith("si")]
        guessing = [{**one, "auc": {"value": 0.5, "low": 0.47, "high": 0.53}} for one in own]
        return replace(cell, attacks=(*cell.attacks, *guessing))

    return {
        key: with_server(key, cell) if key.model in BILINEAR and key.defence == "none" and cell.attacks else cell
        for key, cell in cells.items()
    }


FLIPS: dict[str, tuple[str, str, Change]] = {
    "attacks-succeed": ("holds", "does not hold", weak("cia")),
    "substantial-risk": ("holds", "does not hold", weak("si", "cip", "cia", "ours")),
    "dynamic-strength": ("holds", "does not hold", flat),
    "membership": ("holds", "does not hold", weak("si", "cip")),
    "si-clusters": ("does not hold", "holds", struck("si", 0.9)),
    "cip-ratio": ("does not hold", "holds", struck("cip", 0.9)),
    "cia-ratio": ("holds", "does not hold", weak("cia")),
    "table-1": ("does not hold", "holds", weak("si", "cip", "cia", f1=0.95, auc=0.95)),
    "cip-around-08": ("holds", "does not hold", struck("cip", 0.7, models=("complex",))),
    "cia-beats-cip": ("does not hold", "holds", struck("cia", 0.9, models=DISTANCE)),
    "cia-behind-cip": ("holds", "does not hold", struck("cia", 0.9, models=("distmult",))),
    "cia-insensitive": ("does not hold", "holds", struck("cia", 0.667, 0.5, models=BILINEAR)),
    "si-only-distance": ("cannot be tested", "holds", bilinear_server),
    "rise": ("holds", "does not hold", flat),
    "level-off": ("does not hold", "holds", flat),
    "cia-peaks-early": ("holds", "does not hold", struck("cia", 0.9, rounds=(20,))),
    "from-831-to-594": ("does not hold", "holds", weak("si", "cip", "cia", f1=0.95)),
    "test-may-fail": ("does not hold", "holds", passing),
    "budget-runs-out": ("does not hold", "holds", exhausted),
    "defence-effective": (
        "holds",
        "does not hold",
        all_of(*(struck(name, 0.9, defences=FLAMES + ADAPTIVE, rounds=(20,)) for name in ("si", "cip", "cia"))),
    ),
    "baseline-lowest": (
        "cannot be tested",
        "holds",
        all_of(*(struck(name, 0.9, defences=FLAMES + ADAPTIVE, rounds=(20,)) for name in ("si", "cip", "cia"))),
    ),
    "adp-resists-cia": ("cannot be tested", "holds", struck("cia", 0.8, models=DISTANCE, defences=FLAMES)),
    "flames-resists-passive": (
        "cannot be tested",
        "holds",
        all_of(*(struck(name, 0.8, models=DISTANCE, defences=ADAPTIVE) for name in ("si", "cip"))),
    ),
    "bilinear-comparable": ("holds", "does not hold", struck("cip", 0.9, models=BILINEAR, defences=FLAMES)),
    "enough-defence": (
        "holds",
        "does not hold",
        all_of(*(struck(name, 0.8, defences=FLAMES + ADAPTIVE) for name in ("si", "cip", "cia"))),
    ),
    "adaptive-noise": ("holds", "does not hold", ranks(0.01, "sound", "dp-flames-adaptive")),
    "better-tradeoff": ("holds", "does not hold", ranks(0.9, "published", "dpsgd")),
    "flames-defends-better": (
        "cannot be tested",
        "holds",
        all_of(*(struck(name, 0.9, models=DISTANCE, defences=ADAPTIVE) for name in ("si", "cip", "cia"))),
    ),
    "modest-decrease": ("does not hold", "holds", ranks(0.39, "published", "dp-flames-adaptive")),
    "sparse-tradeoff": ("holds", "does not hold", ranks(0.01, "sound", "dp-flames")),
    "root-cause": ("does not hold", "holds", ranks(0.01, "sound", "noisy-steps")),
    "undefended-mrr": ("does not hold", "holds", ranks(0.9, "sound", "none")),
    "baseline-drop": ("holds", "does not hold", ranks(0.39, "published", "dpsgd")),
    "flames-above-baseline": ("holds", "does not hold", ranks(0.01, "published", "dp-flames")),
    "flames-not-enough": ("holds", "does not hold", ranks(0.39, "published", "dp-flames")),
    "adp-best": ("holds", "does not hold", ranks(0.01, "published", "dp-flames-adaptive")),
    "adp-near": ("does not hold", "holds", ranks(0.39, "published", "dp-flames-adaptive")),
    "adp-always": ("holds", "does not hold", ranks(0.01, "published", "dp-flames-adaptive")),
}


def test_every_rule_is_turned_round_by_a_test() -> None:
    assert set(FLIPS) == {rule.name for rule in RULES}


def test_every_quantity_is_used_by_a_claim_and_every_part_exists() -> None:
    assert {rule.quantity for rule in RULES} == set(QUANTITIES)
    assert {rule.part for rule in RULES} <= set(PARTS)


@pytest.mark.parametrize("name", FLIPS)
def test_an_answer_follows_its_numbers(name: str) -> None:
    first, second, change = FLIPS[name]
    assert before()[name].answer == first
    assert claims(change)[name].answer == second


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_without_cells_a_computed_answer_waits(rule: Measured) -> None:
    found = {claim.name: claim for claim in gather(FULL, {}).claims}
    assert found[rule.name].answer == "not run yet"


BETTER = ("baseline-lowest", "adp-resists-cia", "flames-resists-passive", "flames-defends-better")


def test_a_defence_that_is_worse_is_not_called_better() -> None:
    def struck_all(f1: float, defences: tuple[str, ...]) -> Change:
        return all_of(*(struck(name, f1, defences=defences) for name in ("si", "cip", "cia")))

    found = claims(all_of(struck_all(0.9, ("dpsgd", *ADAPTIVE)), struck_all(0.7, FLAMES)))
    assert {name: found[name].answer for name in BETTER[:2]} == dict.fromkeys(BETTER[:2], "does not hold")
    found = claims(all_of(struck_all(0.7, ADAPTIVE), struck_all(0.9, FLAMES)))
    assert {name: found[name].answer for name in BETTER[2:]} == dict.fromkeys(BETTER[2:], "does not hold")


def test_a_peak_at_the_beginning_is_not_looked_for_later() -> None:
    def late(cell: Cell) -> Cell:
        entries = (one for one in cell.attacks if not one["attack"].startswith("cia") or one["round"] > 5)
        return replace(cell, attacks=tuple(entries))

    found = claims(lambda cells: {key: late(cell) for key, cell in cells.items()})["cia-peaks-early"]
    assert (found.answer, found.brief) == ("cannot be tested", "CIA was first played at round 10")


def test_an_undefended_mrr_below_the_paper_waits_for_the_other_column() -> None:
    low = ranks(0.2, "published", "none")(grid())
    cells = {key: cell for key, cell in low.items() if (key.column, key.defence) != ("sound", "none")}
    assert {claim.name: claim for claim in gather(FULL, cells).claims}["undefended-mrr"].answer == "not run yet"


def test_a_data_set_that_is_not_complete_is_left_out_and_named() -> None:
    cells = {key: cell for key, cell in grid().items() if key.data == "fb15k-237" or key.model == "transe"}
    found = {claim.name: claim for claim in gather(FULL, cells).claims}["cip-around-08"]
    assert found.answer == "holds"
    assert "left out: NELL-995" in found.reason


def test_a_missing_cell_that_could_change_the_answer_delays_it() -> None:
    votes = [Vote(True, "one"), Vote(True, "two"), Vote(None, "three")]
    assert judged(votes, "cells").answer == "not run yet"
    assert judged(votes, "cells", share=0.5).answer == "holds"
    assert "1 not run" in judged(votes, "cells").reason
    assert judged([*votes, Vote(False, "four")], "cells").answer == "does not hold"


def test_a_budget_that_covers_no_round_has_no_vote() -> None:
    cells = {
        key: replace(cell, round=0, utility={}, controls={}, attacks=()) if key.defence == "dpsgd" else cell
        for key, cell in grid().items()
    }
    found = {claim.name: claim for claim in gather(FULL, cells).claims}
    assert found["baseline-drop"].answer == "not run yet"
    assert found["adp-near"].answer == "does not hold"


def test_names_are_unique_and_answers_known() -> None:
    names = [claim.name for claim in before().values()]
    assert len(names) == len(set(names)) == len(RULES) + len(WRITTEN) > 60
    assert {claim.answer for claim in before().values()} <= set(ANSWERS)
    assert all(claim.reason.endswith(".") for claim in before().values())


@pytest.mark.parametrize("claim", WRITTEN, ids=lambda claim: claim.name)
def test_evidence_that_is_written_exists(claim: Written) -> None:
    if claim.evidence in (*PARTS, "method"):
        return
    file, _, anchor = claim.evidence.partition("#")
    text = (ROOT / file).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {"-".join(re.sub(r"[^\w\- ]", "", heading.lower()).split()) for heading in headings}
    assert not anchor or anchor in slugs


def test_the_sample_ranks_as_its_formula_says() -> None:
    assert metrics(0.4)["all"]["both.mrr"] == 0.3
