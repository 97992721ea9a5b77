"""CIA, the paper's active attack by a client: turn the tails of the targets round, and see who turns them back.

The adversary reverses the tail rows of its targets in one upload. A victim that holds a target triple pulls the tail
back in the rounds that follow. Targets attacked at once disturb each other, so they are attacked in groups, each on
its own fork of the federation; a group size of 0 attacks all at once, as the paper reads. On FB15k-237 (TransE) groups
of 600 cost little (round 10, three rounds later: AUC .916 against .923 with 150) and a quarter of the time, and
waiting 1, 2, 3, 4, 5 rounds gives AUC .90, .91, .93, .94, .95 (round 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedkge.attacks.upload_difference import match
from fedkge.base.errors import DataError
from fedkge.base.short_repr import short_repr
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.models import Embedding, Tables
from fedkge.models.tables import Table

BILINEAR_SCALE = 1.8
"""What the authors multiply tails by for DistMult and ComplEx, where a change of sign does little."""


SCRAPS = 0.05
"""Groups smaller than this share of the group size are not attacked on their own."""


class Seat(Protocol):
    """A client's place in a federation: it submits rows and receives what the server makes of them.

    Rows are those of the run's entity table, NaN where the client owns none.
    """

    @property
    def upload(self) -> Table:
        """What the client would submit if it were honest."""
        ...

    @property
    def embedding(self) -> Embedding:
        """The client's model, over the run's entities and relations; only its scorer and relations matter here."""
        ...

    def submit(self, rows: Table) -> Table:
        """Deliver an upload; the round ends, and the averaged rows come back."""
        ...


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Reversal:
    """Scores of the targets right after the reversal and after the waiting rounds, and how well they were aimed at.

    `matched` sums, over the waiting rounds, the cosines between the movement of head and tail and the direction in
    which the target's score rises: the matched filter of `upload_difference`, seen through the average.
    """

    before: NDArray[np.floating[Any]]
    after: NDArray[np.floating[Any]]
    matched: NDArray[np.floating[Any]]

    def gain(self) -> NDArray[np.floating[Any]]:
        """s2 - s1: how much more plausible the target became again. Higher means member."""
        return self.after - self.before

    def published_ratio(self, margin: float) -> NDArray[np.floating[Any]]:
        """s1 / s2 of the paper, whose score is a distance for TransE and RotatE (margin > 0); as published."""
        before, after = (margin - self.before, margin - self.after) if margin else (self.after, self.before)
        safe = np.where(np.abs(after) < 1e-9, 1e-9, after)
        ratio: NDArray[np.floating[Any]] = before / safe
        return ratio


@dataclass(frozen=True, slots=True)
class CIA:
    """The attack: group size, and how many rounds to wait after the reversal."""

    group_size: int = 600
    waiting_rounds: int = 5

    def play(
        self,
        take_seat: Callable[[], Seat],
        targets: Triples,
        threads: int = 1,
        advance: Callable[[int, int], None] = lambda *_: None,
    ) -> Reversal:
        """Attack all targets, each group from a fresh seat at the same moment of the federation.

        `advance` hears how many of how many targets are done.
        """
        before, after, matched = np.empty(len(targets)), np.empty(len(targets)), np.empty(len(targets))

        def attack(group: NDArray[np.int64]) -> int:
            before[group], after[group], matched[group] = self._attack_group(take_seat(), targets[group])
            return len(group)

        done = 0
        blas = threadpool_limits(limits=1, user_api="blas")  # its own threads would wait for each other, spinning
        with blas, ThreadPoolExecutor(max_workers=threads) as pool:
            for count in pool.map(attack, disjoint_groups(targets, self.group_size)):
                done += count
                advance(done, len(targets))
        return Reversal(before, after, matched)

    def _attack_group(self, seat: Seat, targets: Triples) -> tuple[Table, Table, Table]:
        rows = seat.upload.copy()
        if np.isnan(rows[targets[:, [HEAD, TAIL]]]).any():
            raise DataError("a target's entity is not among the adversary's own: draw targets from the overlap")
        model = seat.embedding
        reverse_tails(model, rows, targets)
        received = seat.submit(rows)
        before, matched = score_targets(model, received, targets), np.zeros(len(targets))
        for _ in range(self.waiting_rounds):
            sent, received = received, seat.submit(received)
            matched += match(model.scorer, sent, received, model.tables.relations, targets)
        return before, score_targets(model, received, targets), matched


def reverse_tails(embedding: Embedding, rows: Table, targets: Triples) -> None:
    """Turn the tails of the targets round in `rows`, each once: the lie that the adversary uploads."""
    distance = embedding.scorer.comparison.is_distance
    rows[np.unique(targets[:, TAIL])] *= -1.0 if distance else BILINEAR_SCALE


def score_targets(embedding: Embedding, rows: Table, targets: Triples) -> Table:
    """The scores of the targets under `rows` and the adversary's own relations."""
    relations = embedding.tables.relations
    if np.isnan(relations[targets[:, RELATION]]).any():
        raise DataError("a target's relation is not among the adversary's own: draw targets of common relations")
    return Embedding(embedding.scorer, Tables(rows, relations), embedding.margin).score_triples(targets)


def disjoint_groups(targets: Triples, size: int) -> Iterator[NDArray[np.int64]]:
    """Indices of targets in groups of at most `size` in which no head is reversed, because it is nobody's tail.

    Targets may share a head or a tail: the tail is reversed once for all of them. On graphs with hubs, where no entity
    might occur twice before, that takes a tenth of the forks (FB15k-237, four designs: 19 in place of 193). The two
    ends of a loop are one entity, which then occurs nowhere else in its group. Size 0 is one group of all. A handful
    that is left over, less than a twentieth of `size`, joins the group before it: a fork of its own would cost as much
    as any, and so few disturb little.

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
