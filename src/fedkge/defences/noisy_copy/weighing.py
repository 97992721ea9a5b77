"""How much counts weigh beside a model: as much as ranks best what the copy says and the model was not taught.

Some answers are kept from training. Drawn as often as they are likely to be true, they are ranked by model and counts
together, for each of some weights. All of it is post-processing of the copy.
"""

from __future__ import annotations

import numpy as np

from fedkge.defences.noisy_copy.copy_prior import CopyPrior
from fedkge.defences.noisy_copy.expectation import Cells, Numbers
from fedkge.defences.noisy_copy.noisy_copy import NoisyCopy, held_out, triples_of, truths
from fedkge.evaluation.queries import group_queries
from fedkge.graph import Side, Triples
from fedkge.mechanisms.responses import flip_chance
from fedkge.models.embedding import Embedding

WEIGHTS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
JUDGED = 256
"""So many are ranked."""
LEAST, MOST_LIES = 8.0, 0.25
"""Where fewer true ones are to be expected among those held out, or more of all answers are lies, they are no judges:
counts get the largest weight.
"""
CHUNK = 32
"""So many are ranked at a time."""


def weigh(copy: NoisyCopy, embedding: Embedding, believed: Triples, generator: np.random.Generator) -> float:
    """The weight of counts that suits this model; other believed answers to a question are no mistakes."""
    chosen = held_out(copy.cells)
    cells, chances = copy.cells[chosen], truths(copy.rates[chosen], copy.epsilon)
    if chances.sum() < LEAST or flip_chance(copy.epsilon) > MOST_LIES:
        return WEIGHTS[-1]
    triples = triples_of(cells[generator.choice(len(cells), JUDGED, p=chances / chances.sum())], copy.entities)
    sides: tuple[Side, ...] = ("tail", "head")
    total = np.add.reduce([_reciprocal_ranks(copy, embedding, triples, believed, side) for side in sides])
    return WEIGHTS[int(np.argmax(total))]


def _reciprocal_ranks(copy: NoisyCopy, embedding: Embedding, triples: Triples, known: Triples, side: Side) -> Numbers:
    """For each weight, the sum over all triples, some at a time: a row of scores has a number for every entity."""
    sums = np.zeros(len(WEIGHTS))
    for first in range(0, len(triples), CHUNK):
        queries = group_queries(triples[first : first + CHUNK], known, side, copy.entities)
        model, counts = (np.zeros((len(queries), copy.entities), np.float32) for _ in range(2))
        embedding.score(queries.triples, side, model)
        CopyPrior(copy.expected, 1.0).add_scores(queries.triples, side, counts)
        asked, right = _places(queries.starts), _places(queries.known_starts)
        for place, weight in enumerate(WEIGHTS):
            scores = model + np.float32(weight) * counts
            own = scores[asked, queries.answers][:, None]
            scores[right, queries.known] = -np.inf
            rivals = scores[asked]
            rivals[np.arange(len(asked)), queries.answers] = -np.inf
            above, level = (rivals > own).sum(axis=1), (rivals == own).sum(axis=1)
            sums[place] += (1 / (1 + above + level / 2)).sum()
    return sums


def _places(starts: Cells) -> Cells:
    """The group of each value, where `starts` says with which value each group begins."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
