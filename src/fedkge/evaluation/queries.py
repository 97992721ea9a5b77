"""Queries: the distinct questions behind some triples, and which known answers they must not be punished for.

Triples that share what is left when one side is taken away, (head, ?, relation) or (relation, ?, tail), ask the same
question. One row of scores answers all of them, so they are grouped; groups are in the order of (relation, anchor).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr
from fedkge.graph import HEAD, RELATION, TAIL, Side, Triples

CHUNK = 1 << 20
"""How many known triples are looked at in one go: bounds the memory for temporary keys."""


@short_repr("side")
@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """The distinct questions of one side.

    `order[starts[g] : starts[g + 1]]` are the positions of the triples of group g, `answers` their true entities in
    that order; `known[known_starts[g] : known_starts[g + 1]]` are the distinct known answers of group g, ascending.
    """

    side: Side
    triples: Triples
    """One triple per group."""
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    answers: NDArray[np.int64]
    known: NDArray[np.int64]
    known_starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.triples)


def columns(side: Side) -> tuple[int, int]:
    """The columns of the given entity (the anchor) and of the one that is asked for.

    >>> columns("tail")
    (0, 2)
    """
    return (HEAD, TAIL) if side == "tail" else (TAIL, HEAD)


def group_queries(triples: Triples, known: Triples, side: Side, entities: int) -> Queries:
    """Group triples by question and look up the known answers of exactly these questions.

    >>> test = np.array([[0, 0, 1], [2, 0, 1], [0, 0, 2]], dtype=np.int32)
    >>> queries = group_queries(test, test, "tail", entities=3)
    >>> queries.triples.tolist(), queries.starts.tolist(), queries.known.tolist()
    ([[0, 0, 1], [2, 0, 1]], [0, 2, 3], [1, 2, 1])
    """
    anchor, answer = columns(side)
    keys = _keys(triples, anchor, entities)
    order = np.argsort(keys, kind="stable")
    distinct, first, sizes = np.unique(keys[order], return_index=True, return_counts=True)
    found, known_starts = _known_answers(distinct, triples[order[first]], known, side, entities)
    return Queries(
        side=side,
        triples=np.ascontiguousarray(triples[order[first]]),
        order=order,
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        answers=triples[order, answer].astype(np.int64),
        known=found,
        known_starts=known_starts,
    )


def _keys(triples: Triples, anchor: int, entities: int) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = triples[:, RELATION].astype(np.int64) * entities + triples[:, anchor]
    return keys


def _known_answers(
    distinct: NDArray[np.int64], groups: Triples, known: Triples, side: Side, entities: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct known answers by group, in compressed rows. A table of anchors throws most known triples out early."""
    anchor, answer = columns(side)
    anchored = np.zeros(entities, dtype=np.bool_)
    anchored[groups[:, anchor]] = True
    parts = []
    for begin in range(0, len(known), CHUNK):
        chunk = known[begin : begin + CHUNK]
        chunk = chunk[anchored[chunk[:, anchor]]]
        keys = _keys(chunk, anchor, entities)
        group = np.searchsorted(distinct, keys)
        group[group == len(distinct)] = 0
        match = distinct[group] == keys
        parts.append(group[match] * entities + chunk[match, answer])
    pairs = np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
    group_of_pair = pairs // entities
    starts = np.searchsorted(group_of_pair, np.arange(len(distinct) + 1)).astype(np.int64)
    return pairs % entities, starts
