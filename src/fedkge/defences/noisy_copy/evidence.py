"""What a model says about answers: how much likelier than with a popular other end does it find each triple?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedkge.defences.counts.denoising import Profile
from fedkge.defences.noisy_copy.expectation import Numbers
from fedkge.graph import RELATION, Side, Triples
from fedkge.models.embedding import Embedding
from fedkge.models.scorer import Known

DRAWS = 32
"""Popular ends that a relation's triples are compared with."""
CHUNK = 2**14
"""So many triples are judged at a time."""
MOST_EVIDENCE = 6.0
"""A model may change the logarithm of a rate by so much."""


def evidence(triples: Triples, expected: Profile, embedding: Embedding, generator: np.random.Generator) -> Numbers:
    """The logarithm by which a model changes each triple's rate, the mean of both sides.

    The triples are in the order of their relations; all of one relation are compared with the same ends, drawn as often
    as they are expected there.
    """
    relations, found = len(expected.rows) // 2, np.zeros(len(triples))
    bounds = np.searchsorted(triples[:, RELATION], np.arange(relations + 1))
    for relation in np.flatnonzero(np.diff(bounds)):
        tails, heads = (_popular(expected, row, generator) for row in (int(relation), int(relation) + relations))
        for first in range(bounds[relation], bounds[relation + 1], CHUNK):
            part = slice(first, min(first + CHUNK, bounds[relation + 1]))
            found[part] = _against(triples[part], "tail", tails, embedding)
            found[part] += _against(triples[part], "head", heads, embedding)
    return np.clip(found / 2, -MOST_EVIDENCE, MOST_EVIDENCE)


def _against(triples: Triples, side: Side, others: NDArray[np.int32], embedding: Embedding) -> Numbers:
    queries = embedding.scorer.queries(embedding.tables, Known.of(triples, side))
    scores = np.empty((len(triples), len(others)), embedding.tables.entities.dtype)
    table, compare = embedding.tables.entities, embedding.scorer.comparison.against_rows
    compare(queries, table, others[None, :], len(triples), embedding.offset, scores)
    own = embedding.score_triples(triples, side)
    highest = np.maximum(own, scores.max(axis=1))
    together = np.exp(own - highest) + np.exp(scores - highest[:, None]).sum(axis=1)
    return np.asarray(own - highest - np.log(together) + np.log(len(others) + 1), np.float64)


def _popular(expected: Profile, row: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """Some entities, drawn as often as they are expected in this row."""
    sums = np.cumsum(expected.rows[row].full(expected.entities) + 1e-12)
    drawn = np.searchsorted(sums, generator.random(DRAWS) * sums[-1])
    return np.asarray(np.minimum(drawn, expected.entities - 1), np.int32)
