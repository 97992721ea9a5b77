"""CIP, the client-initiated passive inference attack (paper, section 3.3), and forms of it that work better.

A client compares its upload E_u with the averaged rows E_b that come back. Rows that changed belong to somebody else
too, and E_CIP = (N E_b - E_u) / (N - 1) is what the others had there. Its own relation rows stand in for the victim's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fedkge.attacks.attack import Needs
from fedkge.attacks.structure import (
    COLLUSION,
    Scores,
    newest_sight,
    relations_of_client,
    require_known,
    score_under,
    table_of,
    worst_where_unknown,
)
from fedkge.attacks.view import View
from fedkge.errors import ConfigurationError
from fedkge.graph import Triples
from fedkge.models.tables import Table

Statistic: TypeAlias = Literal["score", "ratio", "distance-ratio"]

CLIENT = Needs(adversary=("client",))

TINY = 1e-9
"""Keeps ratios finite where a score or a distance is zero."""


def extract(own_upload: Table, result: Table, owners: int | np.ndarray[tuple[int], np.dtype[np.int64]]) -> Table:
    """E_CIP: the mean of the other owners' rows; NaN where the row did not change, so nobody else owns it.

    `owners` counts the owners of each row, or is one number for all.

    >>> extract(np.array([[1.0], [5.0]]), np.array([[2.0], [5.0]]), 2).tolist()
    [[3.0], [nan]]
    """
    number = np.broadcast_to(np.asarray(owners, dtype=result.dtype), (len(result),))
    overlap = (result != own_upload).any(axis=1) & np.isfinite(result).all(axis=1) & (number > 1)
    others = np.maximum(number - 1, 1)[:, None]
    extracted: Table = ((number[:, None] * result - own_upload) / others).astype(result.dtype)
    extracted[~overlap] = np.nan
    return extracted


def ratio(above: Scores, below: Scores) -> Scores:
    """above / below, finite also where `below` is zero.

    >>> ratio(np.array([1.0]), np.array([-4.0])).tolist()
    [-0.25]
    """
    far_enough = np.where(np.abs(below) < TINY, np.copysign(TINY, below), below)
    return np.asarray(above / far_enough)


@dataclass(frozen=True, slots=True)
class CIP:
    """Scores targets by the rows that a client extracts from the average.

    score           f(h1, r, t1) under the extracted rows: what works.
    ratio           f(h1, r, t1) / f(h2, r, t2), extracted over own, as published. With f = margin - distance it
                    changes sign and turns round during training.
    distance-ratio  d(h2, r, t2) / d(h1, r, t1), own over extracted: the ratio that the paper means, for models whose
                    score is a distance.

    A relation that the client has no row for gets the lowest score of the others.
    """

    name: str = "cip"
    statistic: Statistic = "score"
    needs: Needs = CLIENT

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple from the newest round in which the client took part."""
        if self.statistic == "distance-ratio" and not view.scorer.comparison.is_distance:
            raise ConfigurationError(
                f"attack {self.name!r} divides distances, and {view.scorer.name} has none (its scores are inner "
                "products of either sign): use cip"
            )
        sight = newest_sight(view, self.name, "own_upload", "result", "relations")
        own, relations = table_of(sight, "own_upload"), relations_of_client(view, sight)
        extracted = extract(own, table_of(sight, "result"), view.clients if view.owners is None else view.owners)
        require_known(extracted, triples, self.name)
        margin = 0.0 if self.statistic == "distance-ratio" else view.margin
        first = score_under(view.scorer, extracted, relations, triples, margin)
        if self.statistic == "score":
            return worst_where_unknown(first)
        second = score_under(view.scorer, own, relations, triples, margin)
        if self.statistic == "ratio":
            return worst_where_unknown(ratio(first, second))
        return worst_where_unknown(ratio(-second, -first))


@dataclass(frozen=True, slots=True)
class CIPCollusion:
    """CIP when the server hands the client the victim's raw upload: nothing to extract, no limit to the overlap."""

    name: str = "cip-collusion"
    needs: Needs = COLLUSION

    def score(self, view: View, triples: Triples) -> Scores:
        """f(h, r, t) under the victim's newest upload, with the colluding client's relation rows."""
        sight = newest_sight(view, self.name, "upload", "relations")
        upload = table_of(sight, "upload")
        require_known(upload, triples, self.name)
        relations = relations_of_client(view, sight)
        return worst_where_unknown(score_under(view.scorer, upload, relations, triples, view.margin))
