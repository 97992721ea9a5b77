"""Upload difference: does the victim move its rows as training on this triple would move them?

A matched filter. In round k the victim starts from E_k and uploads E^v_k. If it trained on (h, r, t), the rows of h
and t went down the gradient of that triple's positive loss, whatever else pulled at them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkge.attacks.attack import Needs, Scores
from fedkge.attacks.structure import (
    SERVER,
    RelationSource,
    movements,
    newest_round,
    relation_is_known,
    relations_from_auxiliary,
    score_under,
    table_of,
    worst_where_unknown,
)
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.models.scorer import Known, Scorer
from fedkge.models.tables import Gradients, RowGradient, Table, Tables
from fedkge.runs.view import View


def score_slopes(scorer: Scorer, entities: Table, relations: Table, triples: Triples) -> tuple[Table, Table]:
    """The gradient of each triple's score by its head row and by its tail row; both sums where head and tail are one.

    The positive loss -log sigmoid(score) falls as the score rises, so its gradient points exactly the other way.

    >>> from fedkge.models.distmult import DistMult
    >>> rows, relation = np.array([[2.0], [5.0]], np.float32), np.array([[3.0]], np.float32)
    >>> head, tail = score_slopes(DistMult(), rows, relation, np.array([[0, 0, 1]], np.int32))
    >>> head.tolist(), tail.tolist()
    ([[15.0]], [[6.0]])
    """
    # Tables of one row per triple: the kernels then keep the gradients of triples that share an entity apart.
    count = len(triples)
    heads, tails = entities[triples[:, HEAD]], entities[triples[:, TAIL]]
    places = np.arange(count, dtype=np.int32)
    tables = Tables(heads, np.ascontiguousarray(relations[triples[:, RELATION]], dtype=entities.dtype))
    known = Known(places, places, "tail")
    queries, slope, tail_slopes = scorer.queries(tables, known), np.zeros_like(heads), np.zeros_like(tails)
    weights = np.ones((count, 1), dtype=entities.dtype)
    scorer.comparison.backward(queries, tails, places[:, None], 1, weights, slope, places, tail_slopes)
    into = Gradients(RowGradient.of(heads, count), RowGradient.of(tables.relations, count))
    into.entities.touch(places)
    into.relations.touch(places)
    scorer.backward(tables, known, slope, into)
    head_slopes = into.entities.values
    loops = triples[:, HEAD] == triples[:, TAIL]
    head_slopes[loops] += tail_slopes[loops]
    tail_slopes[loops] = head_slopes[loops]
    return head_slopes, tail_slopes


def cosines(first: Table, second: Table) -> Scores:
    """The cosine of the angle between rows; 0 where one of them is zero.

    >>> cosines(np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([[5.0, 0.0], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    wide, other = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(other, axis=1)
    products = np.einsum("ij,ij->i", wide, other)
    return np.asarray(np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0))


def match(scorer: Scorer, sent: Table, moved_to: Table, relations: Table, triples: Triples) -> Scores:
    """How well the movement of head and tail, summed, points where the triple's score rises; between -2 and 2.

    >>> from fedkge.models.distmult import DistMult
    >>> sent, moved_to = np.array([[2.0], [5.0]], np.float32), np.array([[3.0], [5.0]], np.float32)
    >>> match(DistMult(), sent, moved_to, np.array([[3.0]], np.float32), np.array([[0, 0, 1]], np.int32)).tolist()
    [1.0]
    """
    heads, tails = score_slopes(scorer, sent, relations, triples)
    moved_heads, moved_tails = (moved_to[triples[:, end]] - sent[triples[:, end]] for end in (HEAD, TAIL))
    # The loss goes down where the score goes up: -cos(D, u) = cos(D, slope of the score).
    return cosines(moved_heads, heads) + cosines(moved_tails, tails)


@dataclass(frozen=True, slots=True)
class UploadDifference:
    """sum over rounds k of [-cos(D_k[h], u_h) - cos(D_k[t], u_t)] with D_k = E^v_k - E_k.

    u is the gradient of the positive loss at E_k. A relation that has no row in a round adds nothing there; one that
    never has one gets the lowest score of the others.
    """

    name: str = "upload-difference"
    relations: RelationSource = relations_from_auxiliary
    needs: Needs = SERVER

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple from all rounds in which the victim took part."""
        total, heard = np.zeros(len(triples)), np.zeros(len(triples), dtype=bool)
        for sent, upload, relations in movements(view, self.name, triples, self.relations):
            able = relation_is_known(relations, triples)
            total[able] += match(view.scorer, sent, upload, relations, triples[able])
            heard |= able
        return worst_where_unknown(np.where(heard, total, np.nan))


@dataclass(frozen=True, slots=True)
class UploadCombined:
    """Where the victim's rows lie, as in SI, and how they moved, as above: the sum of both scores, each in its own
    standard deviations over the candidates.

    They fail on different triples. FB15k-237, TransE, 20 rounds, TPR at 1 % FPR: .968 and .966 alone, .996 together.
    """

    name: str = "upload-combined"
    relations: RelationSource = relations_from_auxiliary
    needs: Needs = SERVER

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple, from all rounds in which the victim took part and from its newest upload."""
        movement = UploadDifference(self.name, self.relations, self.needs).score(view, triples)
        number = newest_round(view, self.name, "upload")
        place = score_under(view.scorer, table_of(view, number, "upload"), self.relations(view, number), triples)
        known = ~np.isnan(place)
        total = np.full(len(triples), np.nan)
        total[known] = standardised(place[known]) + standardised(movement[known])
        return worst_where_unknown(total)


def standardised(scores: Scores) -> Scores:
    """Scores in standard deviations from their mean; zeros where all are equal.

    >>> standardised(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    if len(scores) == 0:
        return scores
    return np.asarray((scores - scores.mean()) / (scores.std() or 1.0))
