"""What every attack must do: need what it says, read nothing else, refuse other views, and find planted members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from fedkge.attacks import ATTACKS, Attack, check, make_attack
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.runs.view import View
from tests.attacks import MODELS, VISIBLE, area_under_curve, federation, without
from tests.cases import Case

EVERYTHING = ("sent", "upload", "result", "own_upload", "relations", "auxiliary", "own_triples")


class AttackCase(Case):
    """A registered attack. A subclass names it and says what it reads, on which models, and how well it works."""

    reads: ClassVar[tuple[str, ...]]
    """The pieces of a round, and the fields of the view, without which it cannot score."""
    models: ClassVar[tuple[str, ...]] = tuple(MODELS)
    least: ClassVar[float | None] = 0.55
    """The area under the curve that it exceeds on planted members; None for the paper's own formulas."""
    scores_unknown_relations: ClassVar[bool] = False

    def make(self) -> Attack:
        return make_attack(self.name)

    def view(self, model: str = "transe") -> View:
        return federation(model).view(self.make().needs.adversary[0])

    def test_the_registry_has_it_under_its_name(self) -> None:
        assert ATTACKS[self.name].name == self.name

    def test_scores_are_finite_repeatable_and_leave_the_view_alone(self) -> None:
        for model in self.models:
            attack, view, targets = self.make(), self.view(model), federation(model).canaries
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

    def test_planted_members_are_found(self) -> None:
        """The mean of three federations lay at least 0.07 above each threshold when they were chosen."""
        for model in self.models if self.least is not None else ():
            areas = []
            for seed in range(3):
                trained = federation(model, seed=seed)
                scores = self.make().score(trained.view(self.make().needs.adversary[0]), trained.canaries)
                areas.append(area_under_curve(scores, trained.members))
            assert np.mean(areas) > self.least, model  # type: ignore[operator]

    def test_it_reads_nothing_but_what_it_needs(self) -> None:
        view, targets = self.view(), federation("transe").canaries
        bare = without(view, *(piece for piece in EVERYTHING if piece not in self.reads))
        check(self.make(), bare)
        np.testing.assert_array_equal(self.make().score(bare, targets), self.make().score(view, targets))

    def test_it_complains_when_what_it_needs_is_missing(self) -> None:
        for piece in self.reads:
            poor = without(self.view(), piece)
            with pytest.raises(ConfigurationError, match=r"auxiliary|relation" if piece == "auxiliary" else piece[:8]):
                self.make().score(poor, federation("transe").canaries)
            if piece == "auxiliary":
                with pytest.raises(ConfigurationError, match="--auxiliary"):
                    check(self.make(), poor)

    def test_targets_about_unknown_entities_are_refused(self) -> None:
        view, targets = self.view(), federation("transe").canaries.copy()

        def hidden(messages: Any) -> Any:
            tables = {client: rows["entities"].copy() for client, rows in messages.items()}
            for table in tables.values():
                table[targets[0, 0]] = np.nan
            return {client: {"entities": table} for client, table in tables.items()}

        def hide(number: int) -> Any:
            seen = view.look(number)
            return replace(
                seen, broadcasts=hidden(seen.broadcasts), uploads=hidden(seen.uploads), results=hidden(seen.results)
            )

        with pytest.raises(DataError, match="target entities outside the overlap"):
            self.make().score(replace(view, look=hide), targets)
        targets[3, 2] = 10_000
        with pytest.raises(DataError, match=r"1 of 200 target triples.*outside the overlap"):
            self.make().score(view, targets)

    def test_a_relation_that_the_adversary_does_not_know_gets_no_score_above_others(self) -> None:
        view, targets = self.view("rotate"), federation("rotate").canaries.copy()
        targets[:5, 1] = 1_000
        scores = self.make().score(view, targets)
        assert np.isfinite(scores).all()
        if not self.scores_unknown_relations:
            assert (scores[:5] == scores[5:].min()).all()
        only = self.make().score(view, targets[:5])
        assert np.isfinite(only).all()

    def test_check_refuses_other_adversaries_other_models_and_no_rounds(self) -> None:
        attack, view = self.make(), self.view()
        other = next(adversary for adversary in VISIBLE if adversary not in attack.needs.adversary)
        with pytest.raises(ConfigurationError, match=f"got the view of {other}"):
            check(attack, replace(view, adversary=other))
        with pytest.raises(ConfigurationError, match="recorded round"):
            check(attack, replace(view, rounds=()))
        for model in set(MODELS) - set(self.models):
            with pytest.raises(ConfigurationError, match=r"works on TransE and RotatE"):
                check(attack, self.view(model))
            with pytest.raises(ConfigurationError, match=r"any relation row|has none"):
                attack.score(self.view(model), federation(model).canaries)

    def test_rounds_that_the_victim_sat_out_are_passed_over(self) -> None:
        """Where it reads the victim's uploads of all rounds."""
        view, targets = self.view(), federation("transe").canaries
        if "upload" in self.reads:
            absent = without(view, "upload", rounds=(8,))
            found, expected = self.make().score(absent, targets), self.make().score(view.until(7), targets)
            np.testing.assert_array_equal(found, expected)
