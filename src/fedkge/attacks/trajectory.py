"""Trajectory: how much the victim's own work improved a triple, summed over the rounds that were seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkge.attacks.attack import Needs, Scores
from fedkge.attacks.structure import (
    SERVER,
    RelationSource,
    movements,
    relations_from_auxiliary,
    score_under,
    worst_where_unknown,
)
from fedkge.graph import Triples
from fedkge.runs.view import View


@dataclass(frozen=True, slots=True)
class Trajectory:
    """sum over rounds k of [score under the upload E^v_k - score under the rows sent E_k].

    Both scores of a round use the same relation rows, so that only the entities' movement counts. A relation that
    has no row in a round adds nothing there; one that never has one gets the lowest score of the others.
    """

    name: str = "trajectory"
    relations: RelationSource = relations_from_auxiliary
    needs: Needs = SERVER

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple from all rounds in which the victim took part."""
        total, heard = np.zeros(len(triples)), np.zeros(len(triples), dtype=bool)
        for sent, upload, relations in movements(view, self.name, triples, self.relations):
            gain = score_under(view.scorer, upload, relations, triples)
            gain -= score_under(view.scorer, sent, relations, triples)
            heard |= ~np.isnan(gain)
            total += np.nan_to_num(gain)
        return worst_where_unknown(np.where(heard, total, np.nan))
