"""SI, the server-initiated inference attack (paper, section 3.2), in the form that works: centres of relations.

In TransE t - h, and in RotatE the phase of t / h, is nearly the same for all triples of a relation. A few auxiliary
triples of a relation thus show where its triples lie in the victim's upload, and a target is scored by its distance
to that centre. `si_published` holds the clustering that the paper describes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Attack, Needs, Scores, misfit
from fedkge.attacks.structure import (
    RelationSource,
    known_rows,
    newest_round,
    relations_from_auxiliary,
    require_known,
    score_under,
    table_of,
    worst_where_unknown,
)
from fedkge.base.errors import ConfigurationError
from fedkge.graph import Triples
from fedkge.models.scorer import Scorer
from fedkge.runs.view import View

MODELS = ("TransE", "RotatE")
BECAUSE = (
    "only there do two entity rows determine the relation row between them (in a bilinear model any relation row that "
    "is long in the right direction fits); upload-difference works on all models"
)
SERVER = Needs(adversary=("server",), auxiliary=True, models=MODELS, because=BECAUSE)
COLLUSION = Needs(adversary=("collusion",), models=MODELS, because=BECAUSE)

BLOCK = 1 << 16
"""Triples that are scored at a time."""


def require_structure(attack: Attack, scorer: Scorer) -> None:
    """Refuse models in which two entity rows do not determine the relation between them."""
    if scorer.name not in attack.needs.models:
        raise ConfigurationError(misfit(attack, scorer.name))


@dataclass(frozen=True, slots=True)
class SICentres:
    """Minus the distance between a target and the centre of its relation, in the model's own distance.

    TransE: || (t - h) - c ||; RotatE: the sum of | h turned by c - t |, which is the distance on the circle weighted
    by how far from zero, and so how well defined, each phase is. A relation without a centre (no auxiliary triple)
    gets the lowest score of the others.
    """

    name: str = "si-centres"
    relations: RelationSource = relations_from_auxiliary
    needs: Needs = SERVER

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple from the victim's newest upload."""
        require_structure(self, view.scorer)
        number = newest_round(view, self.name, "upload")
        upload = table_of(view, number, "upload")
        require_known(upload, triples, self.name)
        return worst_where_unknown(score_under(view.scorer, upload, self.relations(view, number), triples))


@dataclass(frozen=True, slots=True)
class SILink:
    """Whether head and tail are linked at all: minus the distance to the nearest centre of any relation.

    The relation of a target is not looked at; `infer` also gives the relation of the nearest centre.
    """

    name: str = "si-link"
    relations: RelationSource = relations_from_auxiliary
    needs: Needs = SERVER

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per pair of head and tail."""
        return self.infer(view, triples)[0]

    def infer(self, view: View, triples: Triples) -> tuple[Scores, NDArray[np.int64]]:
        """The link score of each pair, and the relation that it most likely has."""
        require_structure(self, view.scorer)
        number = newest_round(view, self.name, "upload")
        upload = table_of(view, number, "upload")
        require_known(upload, triples, self.name)
        centres = self.relations(view, number)
        relations = np.flatnonzero(known_rows(centres))
        if len(relations) == 0:
            raise ConfigurationError(f"attack {self.name!r}: the adversary knows no relation row of round {number}")
        links = np.empty(len(triples))
        types = np.empty(len(triples), dtype=np.int64)
        step = max(1, BLOCK // len(relations))
        for first in range(0, len(triples), step):
            block = slice(first, first + step)
            scores = score_under(view.scorer, upload, centres, with_relations(triples[block], relations))
            scores = scores.reshape(-1, len(relations))
            links[block], types[block] = scores.max(axis=1), relations[scores.argmax(axis=1)]
        return links, types


def with_relations(triples: Triples, relations: NDArray[np.int64]) -> Triples:
    """Every triple with each of the relations instead of its own.

    >>> with_relations(np.array([[4, 0, 5]], np.int32), np.array([7, 8])).tolist()
    [[4, 7, 5], [4, 8, 5]]
    """
    repeated = np.repeat(triples, len(relations), axis=0)
    repeated[:, 1] = np.tile(relations, len(triples))
    return repeated
