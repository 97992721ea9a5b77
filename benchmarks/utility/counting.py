"""Counting, ranked on the same triples as a federation's model: what an embedding must beat."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.defences.counts.count_prior import CountPrior
from fedkge.defences.noisy_copy import CopyPrior
from fedkge.evaluation import rank, weighted_metrics
from fedkge.evaluation.popularity import Popularity
from fedkge.graph import Side, Triples
from fedkge.runs.run import Run

EXACT, SAME_EPSILON, OWN = "popularity", "popularity, same epsilon", "counts alone"


class CountsAlone:
    """A client's counts as a ranking of their own."""

    def __init__(self, prior: CountPrior | CopyPrior, entities: int) -> None:
        self._prior, self.candidates = prior, entities

    def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
        """Fill `out` with what counts say."""
        out.fill(0)
        self._prior.add_scores(triples, side, out)


def controls(run: Run) -> dict[str, dict[str, float]]:
    """The MRRs of counting, averaged over clients by their test triples: exactly, with all of epsilon spent on it, and
    the defence's own counts, which tell what its embedding adds."""
    epsilon, found = run.configuration.privacy.epsilon, defaultdict(list)
    for name, shard in zip(run.clients, run.shards, strict=True):
        if not len(shard.test):
            continue
        size, generator = len(shard.entities), np.random.default_rng(run.configuration.experiment.seed)
        scorers: dict[str, Any] = {EXACT: Popularity.count(shard.train, size)}
        if epsilon:
            scorers[SAME_EPSILON] = Popularity.count(shard.train, size, epsilon=epsilon, generator=generator)
        if prior := run.prior(name):
            scorers[OWN] = CountsAlone(replace(prior, weight=1.0), size)
        for control, scorer in scorers.items():
            ranking = rank(scorer, shard.test, shard.true_triples, threads=run.configuration.training.threads or None)
            found[control].append((len(ranking), ranking.metrics()))
    return {control: mrrs(weighted_metrics(parts)) for control, parts in found.items()}


def mrrs(metrics: dict[str, float]) -> dict[str, float]:
    """The mean reciprocal ranks by side.

    >>> mrrs({"tail.realistic.mrr": 0.25, "tail.realistic.hits_at_1": 0.1})
    {'tail': 0.25}
    """
    return {
        key.split(".", maxsplit=1)[0]: round(number, 5)
        for key, number in metrics.items()
        if key.endswith(".realistic.mrr")
    }
