"""CIP, the client-initiated passive inference attack (paper, section 3.3), and forms of it that work better.

A client compares its upload E_u with the averaged rows E_b that come back. Rows that changed belong to somebody else
too, and E_CIP = (N E_b - E_u) / (N - 1) is what the others had there. Its own relation rows stand in for the victim's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Needs, Scores
from fedkge.attacks.structure import (
    COLLUSION,
    ends_known,
    newest_round,
    relation_is_known,
    relations_of_client,
    require_known,
    rounds_with,
    score_under,
    table_of,
    worst_where_unknown,
)
from fedkge.attacks.upload_difference import match
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph import Triples
from fedkge.models.tables import Table
from fedkge.runs.view import View

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


def overlaps(view: View, attack: str, newest_first: bool = False) -> Iterator[tuple[int, Table]]:
    """The rounds in which the client took part, with the rows that it extracts from each."""
    owners = view.clients if view.owners is None else view.owners
    for number in rounds_with(view, attack, "own_upload", "result", "relations", newest_first=newest_first):
        yield number, extract(table_of(view, number, "own_upload"), table_of(view, number, "result"), owners)


def require_own(view: View, attack: str, own: NDArray[np.bool_]) -> None:
    """Refuse targets about entities that the client does not own; of those that nobody else moved it knows nothing."""
    if not own.all():
        raise DataError(
            f"attack {attack!r}: {int((~own).sum())} of {len(own)} target triples have target entities outside the "
            f"overlap in every round seen up to {view.rounds[-1]}: choose targets whose both ends adversary and victim "
            "share, or record rounds in which both take part (--record all, a larger --fraction)"
        )


@dataclass(frozen=True, slots=True)
class CIP:
    """Scores targets by the rows that a client extracts from the average.

    score           f(h1, r, t1) under the extracted rows: what works.
    ratio           f(h1, r, t1) / f(h2, r, t2), extracted over own, as published. With f = margin - distance it
                    changes sign and turns round during training.
    distance-ratio  d(h2, r, t2) / d(h1, r, t1), own over extracted: the ratio that the paper means, for models whose
                    score is a distance.

    A relation that the client has no row for gets the lowest score of the others, as do rows that nobody else moved.
    """

    name: str = "cip"
    statistic: Statistic = "score"
    needs: Needs = CLIENT

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple, from the newest round in which the client and other owners of its entities took part.

        Where the others sat a round out (`fraction` below 1) their rows come back as they were, and say nothing.
        """
        if self.statistic == "distance-ratio" and not view.scorer.comparison.is_distance:
            raise ConfigurationError(
                f"attack {self.name!r} divides distances, and {view.scorer.name} has none (its scores are inner "
                "products of either sign): use cip"
            )
        scores, seen, own = np.full(len(triples), np.nan), *np.zeros((2, len(triples)), dtype=bool)
        for number, extracted in overlaps(view, self.name, newest_first=True):
            own |= ends_known(table_of(view, number, "own_upload"), triples)
            fresh = ends_known(extracted, triples) & ~seen
            scores[fresh] = self._score_round(view, number, extracted, triples[fresh])
            seen |= fresh
            if seen.all():
                break
        require_own(view, self.name, own)
        return worst_where_unknown(scores)

    def _score_round(self, view: View, number: int, extracted: Table, triples: Triples) -> Scores:
        own, relations = table_of(view, number, "own_upload"), relations_of_client(view, number)
        margin = 0.0 if self.statistic == "distance-ratio" else view.margin
        first = score_under(view.scorer, extracted, relations, triples, margin)
        if self.statistic == "score":
            return first
        second = score_under(view.scorer, own, relations, triples, margin)
        return ratio(first, second) if self.statistic == "ratio" else ratio(-second, -first)


@dataclass(frozen=True, slots=True)
class CIPMatched:
    """Ours: do the extracted rows lie, from what everyone was sent, where training on the triple would push them?

    The matched filter of `upload_difference` through the average, summed over the rounds that the client saw. Rows
    that nobody else moved in a round add nothing there.
    """

    name: str = "cip-matched"
    needs: Needs = CLIENT

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple from all rounds in which the client took part."""
        total = np.zeros(len(triples))
        own, heard = np.zeros((2, len(triples)), dtype=bool)
        for number, extracted in overlaps(view, self.name):
            relations, sent = relations_of_client(view, number), table_of(view, number, "sent")
            own |= ends_known(table_of(view, number, "own_upload"), triples)
            able = ends_known(extracted, triples) & relation_is_known(relations, triples)
            total[able] += match(view.scorer, sent, extracted, relations, triples[able])
            heard |= able
        require_own(view, self.name, own)
        return worst_where_unknown(np.where(heard, total, np.nan))


@dataclass(frozen=True, slots=True)
class CIPCollusion:
    """CIP when the server hands the client the victim's raw upload: nothing to extract, no limit to the overlap."""

    name: str = "cip-collusion"
    needs: Needs = COLLUSION

    def score(self, view: View, triples: Triples) -> Scores:
        """f(h, r, t) under the victim's newest upload, with the colluding client's relation rows."""
        number = newest_round(view, self.name, "upload", "relations")
        upload = table_of(view, number, "upload")
        require_known(upload, triples, self.name)
        relations = relations_of_client(view, number)
        return worst_where_unknown(score_under(view.scorer, upload, relations, triples, view.margin))
