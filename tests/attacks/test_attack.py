"""What holds for every registered attack: it needs what it says, reads nothing else, and finds planted members."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fedkge.attacks import ATTACKS, Attack, check, make_attack
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.runs.view import View
from tests.attacks import MODELS, VISIBLE, area_under_curve, federation, without

DISTANCE_MODELS = ["transe", "rotate"]


@dataclass(frozen=True)
class Case:
    """The pieces of a round that an attack reads, the models that it works on, and the AUC it must reach (if any)."""

    pieces: tuple[str, ...]
    models: tuple[str, ...] = tuple(MODELS)
    least: float | None = 0.55


CASES = {
    "si-published": Case(("upload", "auxiliary"), tuple(DISTANCE_MODELS), least=None),
    "si-centres": Case(("upload", "auxiliary"), tuple(DISTANCE_MODELS), least=0.8),
    "si-link": Case(("upload", "auxiliary"), tuple(DISTANCE_MODELS), least=0.75),
    "si-collusion": Case(("upload", "relations"), tuple(DISTANCE_MODELS), least=0.65),
    "cip-published": Case(("own_upload", "result", "relations"), least=None),
    "cip": Case(("own_upload", "result", "relations"), least=0.57),
    "cip-distance-ratio": Case(("own_upload", "result", "relations"), tuple(DISTANCE_MODELS)),
    "cip-matched": Case(("sent", "own_upload", "result", "relations")),
    "cip-collusion": Case(("upload", "relations"), least=0.57),
    "upload-difference": Case(("sent", "upload", "auxiliary"), least=0.75),
    "upload-difference-collusion": Case(("sent", "upload", "relations")),
    "upload-combined": Case(("sent", "upload", "auxiliary"), least=0.75),
    "trajectory": Case(("sent", "upload", "auxiliary"), least=0.7),
    "trajectory-collusion": Case(("sent", "upload", "relations")),
}
PAIRS = [(name, model) for name, case in CASES.items() for model in case.models]
PIECES = [(name, piece) for name, case in CASES.items() for piece in case.pieces]


def view_for(name: str, model: str) -> View:
    return federation(model).view(make_attack(name).needs.adversary[0])


def test_every_registered_attack_has_a_case() -> None:
    assert set(CASES) == set(ATTACKS)
    assert all(attack.name == name for name, attack in ATTACKS.items())


def test_an_unknown_attack_is_an_error_that_names_the_near_ones() -> None:
    with pytest.raises(ConfigurationError, match="si-centres"):
        make_attack("si-centers")


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_scores_are_finite_repeatable_and_leave_the_view_alone(name: str, model: str) -> None:
    attack, view, targets = make_attack(name), view_for(name, model), federation(model).canaries
    pieces = [(number, piece) for number in view.rounds for piece in VISIBLE[view.adversary]]
    copies = {(number, piece): view.table(number, piece).copy() for number, piece in pieces}
    check(attack, view)
    scores = attack.score(view, targets)
    assert scores.shape == (len(targets),)
    assert np.isfinite(scores).all()
    order = np.random.default_rng(0).permutation(len(targets))
    np.testing.assert_allclose(attack.score(view, targets[order]), scores[order], rtol=1e-4, atol=1e-5)
    for (number, piece), copy in copies.items():
        np.testing.assert_array_equal(view.table(number, piece), copy)


@pytest.mark.parametrize(("name", "model"), [(n, m) for n, m in PAIRS if CASES[n].least is not None])
def test_planted_members_are_found(name: str, model: str) -> None:
    """The mean of three federations lay at least 0.07 above each threshold when they were chosen."""
    attack, areas = make_attack(name), []
    for seed in range(3):
        fed = federation(model, seed=seed)
        scores = attack.score(fed.view(attack.needs.adversary[0]), fed.canaries)
        areas.append(area_under_curve(scores, fed.members))
    assert np.mean(areas) > CASES[name].least


@pytest.mark.parametrize("name", CASES)
def test_it_reads_nothing_but_what_it_needs(name: str) -> None:
    view, targets = view_for(name, "transe"), federation("transe").canaries
    everything = ("sent", "upload", "result", "own_upload", "relations", "auxiliary", "own_triples")
    bare = without(view, *(piece for piece in everything if piece not in CASES[name].pieces))
    attack = make_attack(name)
    check(attack, bare)
    np.testing.assert_array_equal(attack.score(bare, targets), attack.score(view, targets))


@pytest.mark.parametrize(("name", "piece"), PIECES)
def test_it_complains_when_what_it_needs_is_missing(name: str, piece: str) -> None:
    poor = without(view_for(name, "transe"), piece)
    with pytest.raises(ConfigurationError, match=r"auxiliary|relation" if piece == "auxiliary" else piece[:8]):
        make_attack(name).score(poor, federation("transe").canaries)
    if piece == "auxiliary":
        with pytest.raises(ConfigurationError, match="--auxiliary"):
            check(make_attack(name), poor)


@pytest.mark.parametrize("name", CASES)
def test_targets_about_unknown_entities_are_refused(name: str) -> None:
    view, targets = view_for(name, "transe"), federation("transe").canaries.copy()

    def hidden(messages):
        tables = {client: rows["entities"].copy() for client, rows in messages.items()}
        for table in tables.values():
            table[targets[0, 0]] = np.nan
        return {client: {"entities": table} for client, table in tables.items()}

    def hide(number: int):
        seen = view.look(number)
        return replace(
            seen, broadcasts=hidden(seen.broadcasts), uploads=hidden(seen.uploads), results=hidden(seen.results)
        )

    with pytest.raises(DataError, match="target entities outside the overlap"):
        make_attack(name).score(replace(view, look=hide), targets)
    targets[3, 2] = 10_000
    with pytest.raises(DataError, match=r"1 of 200 target triples.*outside the overlap"):
        make_attack(name).score(view, targets)


@pytest.mark.parametrize("name", CASES)
def test_a_relation_that_the_adversary_does_not_know_gets_no_score_above_others(name: str) -> None:
    view, targets = view_for(name, "rotate"), federation("rotate").canaries.copy()
    targets[:5, 1] = 1_000
    scores = make_attack(name).score(view, targets)
    assert np.isfinite(scores).all()
    if name not in ("si-link", "si-published"):
        assert (scores[:5] == scores[5:].min()).all()
    only = make_attack(name).score(view, targets[:5])
    assert np.isfinite(only).all()


@pytest.mark.parametrize("name", CASES)
def test_check_refuses_other_adversaries_other_models_and_no_rounds(name: str) -> None:
    attack, view = make_attack(name), view_for(name, "transe")
    other = next(adversary for adversary in VISIBLE if adversary not in attack.needs.adversary)
    with pytest.raises(ConfigurationError, match=f"got the view of {other}"):
        check(attack, replace(view, adversary=other))
    with pytest.raises(ConfigurationError, match="recorded round"):
        check(attack, replace(view, rounds=()))
    for model in MODELS:
        if model not in CASES[name].models:
            bilinear = view_for(name, model)
            with pytest.raises(ConfigurationError, match=r"works on TransE and RotatE"):
                check(attack, bilinear)
            with pytest.raises(ConfigurationError, match=r"any relation row|has none"):
                attack.score(bilinear, federation(model).canaries)


@pytest.mark.parametrize("name", ["si-centres", "upload-difference", "trajectory"])
def test_rounds_that_the_victim_sat_out_are_passed_over(name: str) -> None:
    attack, view, targets = make_attack(name), view_for(name, "transe"), federation("transe").canaries
    absent = without(view, "upload", rounds=(8,))
    np.testing.assert_array_equal(attack.score(absent, targets), attack.score(view.until(7), targets))


def test_the_page_about_new_attacks_shows_one_that_runs() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "a-new-attack.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {"__name__": "a_new_attack"}
    exec(compile(blocks[0], str(page), "exec", dont_inherit=True), names)  # noqa: S102 - the repository's own page
    attack: Attack = names["ATTACK"]  # type: ignore[assignment]
    for model in MODELS:
        fed = federation(model)
        check(attack, fed.view("server"))
        scores = attack.score(fed.view("server"), fed.canaries)
        assert np.isfinite(scores).all()
        assert area_under_curve(scores, fed.members) > 0.6
    with pytest.raises(ConfigurationError, match="is for server"):
        check(attack, fed.view("client"))
