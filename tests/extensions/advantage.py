"""An attack by the server: a member scores higher under the victim's upload than under the mean of the round."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.attacks import Needs, View
from fedkge.attacks.attack import Scores
from fedkge.attacks.structure import (
    newest_round,
    relations_from_auxiliary,
    require_known,
    score_under,
    table_of,
    worst_where_unknown,
)
from fedkge.graph import Triples

NEEDS = Needs(adversary=("server",), auxiliary=True)


@dataclass(frozen=True, slots=True)
class Advantage:
    """How much better a triple scores under the victim's newest upload than under that round's mean."""

    name: str = "advantage"
    needs: Needs = NEEDS

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per candidate triple, from the view alone."""
        number = newest_round(view, self.name, "upload", "result")
        upload, result = table_of(view, number, "upload"), table_of(view, number, "result")
        require_known(upload, triples, self.name)
        relations = relations_from_auxiliary(view, number)
        before = score_under(view.scorer, upload, relations, triples)
        after = score_under(view.scorer, result, relations, triples)
        return worst_where_unknown(before - after)
