"""CIA, the paper's active attack by a client: what it changes in an upload, and how it scores the answer.

The adversary reverses the tail rows of its targets in one upload. A victim that holds a target triple pulls the tail
back in the rounds that follow. `fedkge.experiments.cia` runs the rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Scores
from fedkge.base.errors import DataError
from fedkge.base.short_repr import short_repr
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.models import Embedding, Tables
from fedkge.models.tables import Table

BILINEAR_SCALE = 1.8
"""What the authors multiply tails by for DistMult and ComplEx, where a change of sign does little."""
SCRAPS = 0.05
"""Groups smaller than this share of the group size are not attacked on their own."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Reversal:
    """Scores of the targets right after the reversal and after the waiting rounds, and how well they were aimed at.

    `matched` sums, over the waiting rounds, the cosines between the movement of head and tail and the direction in
    which the target's score rises: the matched filter of `upload_difference`, seen through the average.
    """

    before: Scores
    after: Scores
    matched: Scores

    def gain(self) -> Scores:
        """s2 - s1: how much the score of the target rose again. Higher means member."""
        return self.after - self.before

    def published_ratio(self, margin: float) -> Scores:
        """s1 / s2 of the paper, whose score is a distance for TransE and RotatE (margin > 0); as published."""
        before, after = (margin - self.before, margin - self.after) if margin else (self.after, self.before)
        safe = np.where(np.abs(after) < 1e-9, 1e-9, after)
        ratio: Scores = before / safe
        return ratio


def reverse_tails(embedding: Embedding, rows: Table, targets: Triples) -> None:
    """Reverse the tails of the targets in `rows`, each once: this is what the adversary uploads."""
    distance = embedding.scorer.comparison.is_distance
    rows[np.unique(targets[:, TAIL])] *= -1.0 if distance else BILINEAR_SCALE


def score_targets(embedding: Embedding, rows: Table, targets: Triples) -> Scores:
    """The scores of the targets under `rows` and the adversary's own relations."""
    relations = embedding.tables.relations
    if np.isnan(relations[targets[:, RELATION]]).any():
        raise DataError("a target's relation is not among the adversary's own: draw targets of common relations")
    return Embedding(embedding.scorer, Tables(rows, relations), embedding.margin).score_triples(targets)


def disjoint_groups(targets: Triples, size: int) -> Iterator[NDArray[np.int64]]:
    """Indices of targets in groups of at most `size` in which no head is reversed, because it is nobody's tail.

    Targets may share a head or a tail: the tail is reversed once for all of them. On graphs with hubs this needs a
    tenth of the forks (FB15k-237, four designs: 19 instead of 193). The two ends of a loop are one entity, which then
    occurs nowhere else in its group. Size 0 gives one group with all targets. A last group smaller than a twentieth of
    `size` joins the group before it: its own fork would cost as much as any other, and so few targets disturb little.

    >>> triples = np.array([[0, 0, 1], [1, 0, 2], [3, 0, 1]], np.int32)
    >>> [group.tolist() for group in disjoint_groups(triples, 2)]
    [[0, 2], [1]]
    """
    if size == 0:
        yield np.arange(len(targets))
        return
    waiting = list(range(len(targets)))
    before: list[int] = []
    while waiting:
        heads: set[int] = set()
        tails: set[int] = set()
        group: list[int] = []
        left: list[int] = []
        for index in waiting:
            head, tail = int(targets[index, HEAD]), int(targets[index, TAIL])
            if len(group) < size and head not in tails and tail not in heads:
                group.append(index)
                heads.add(head)
                tails.add(tail)
            else:
                left.append(index)
        waiting = left
        if before and len(group) < SCRAPS * size:
            before += group
            continue
        if before:
            yield np.array(before)
        before = group
    if before:
        yield np.array(before)
