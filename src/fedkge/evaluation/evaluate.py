"""One call for a table of utility: the model, and beside it what plain popularity reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from fedkge.base.errors import DataError
from fedkge.base.short_repr import short_repr
from fedkge.evaluation.candidates import CandidateScorer
from fedkge.evaluation.popularity import Popularity
from fedkge.evaluation.ranking import BLOCK_BYTES, Progress, Ranking, rank
from fedkge.graph import Graph, Triples
from fedkge.graph.summary import leaked, unseen_in_train

CONTROL_EPSILON = 1.0
POPULARITY = "popularity"
NOISY_POPULARITY = "popularity, epsilon 1"


@short_repr("split")
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The ranking of one split by a model and by the controls, on the same triples with the same filter.

    `unseen` counts the split's triples with an entity or relation that never occurs in train; `skipped_unseen` says
    whether they were left out of the ranking. `leaked` counts the triples that somebody trains on; `kept_leaked` says
    whether they were ranked all the same.
    """

    graph: Graph
    split: str
    ranking: Ranking
    unseen: int
    skipped_unseen: bool
    controls: Mapping[str, Ranking] = field(default_factory=dict)
    leaked: int = 0
    kept_leaked: bool = False

    @property
    def left_out(self) -> int:
        """How many triples were not ranked because somebody trains on them."""
        return 0 if self.kept_leaked else self.leaked

    def metrics(self) -> dict[str, float]:
        """The model's metrics; see Ranking.metrics."""
        return self.ranking.metrics()

    def table(self, model: str = "model") -> dict[str, dict[str, float]]:
        """One row of metrics for the model and one for each control, by name."""
        return {model: self.metrics(), **{name: ranking.metrics() for name, ranking in self.controls.items()}}


def popularity_controls(graph: Graph, generator: np.random.Generator) -> Mapping[str, Popularity]:
    """The controls that stand in every table: exact counts, and counts with noise for epsilon 1.

    Both are an experimenter's: the noise has a seed that everybody knows, and nobody's budget is charged. They stand in
    no output that may be passed on.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    >>> list(popularity_controls(graph, np.random.default_rng(7)))
    ['popularity', 'popularity, epsilon 1']
    """
    entities = len(graph.entities)
    noisy = Popularity.count(graph.train, entities, epsilon=CONTROL_EPSILON, generator=generator)
    return MappingProxyType({POPULARITY: Popularity.count(graph.train, entities), NOISY_POPULARITY: noisy})


def evaluate(
    scorer: CandidateScorer,
    graph: Graph,
    split: str = "test",
    *,
    known: Triples | None = None,
    controls: bool = True,
    seen_only: bool = False,
    keep_leaked: bool = False,
    sample: int | None = None,
    generator: np.random.Generator | None = None,
    threads: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress | None = None,
) -> Evaluation:
    """Rank a split of the graph, filtered by all its triples or by `known`, with a model and the popularity controls.

    All triples of the split are ranked, also those that train could teach nothing about; `seen_only` leaves these
    out, and they are counted in either case. Triples that are in train too, here or at another client, are counted and
    left out unless `keep_leaked`. `sample` ranks that many triples at most, chosen at random.
    `generator` chooses the sample and the noise of the control; without one both are the same at every call.
    `progress` follows the model's own ranking; the controls take a second or so more.

    >>> graph = Graph.from_names(
    ...     "tiny", train=[("a", "r", "b"), ("c", "r", "b"), ("b", "r", "a")], test=[("d", "r", "b")]
    ... )
    >>> evaluation = evaluate(Popularity.count(graph.train, entities=4), graph, threads=1)
    >>> evaluation.metrics()["tail.realistic.mrr"], evaluation.unseen
    (1.0, 1)
    """
    if scorer.candidates != len(graph.entities):
        raise DataError(
            f"{graph.name}: expected scores for its {len(graph.entities)} entities, "
            f"got a scorer with {scorer.candidates} candidates; evaluate on the graph that it was trained on"
        )
    random = np.random.default_rng(0) if generator is None else generator
    triples, unseen = graph.split(split), unseen_in_train(graph, graph.split(split))
    known_before = leaked(graph, triples)
    out = (unseen & seen_only) | (known_before & (not keep_leaked))
    chosen = triples[~out] if out.any() else triples
    if len(chosen) == 0:
        raise DataError(
            f"{graph.name}/{split}: expected triples to rank, got {len(triples)}: {int(unseen.sum())} "
            f"have names that never occur in train and {int(known_before.sum())} are in train; choose another split"
        )
    if sample is not None and sample < len(chosen):
        chosen = chosen[np.sort(random.choice(len(chosen), size=sample, replace=False))]
    known = graph.all_triples if known is None else known
    beside = popularity_controls(graph, random) if controls else {}
    return Evaluation(
        graph=graph,
        split=split,
        ranking=rank(scorer, chosen, known, threads=threads, block_bytes=block_bytes, progress=progress),
        unseen=int(unseen.sum()),
        skipped_unseen=seen_only,
        controls={
            name: rank(control, chosen, known, threads=threads, block_bytes=block_bytes)
            for name, control in beside.items()
        },
        leaked=int(known_before.sum()),
        kept_leaked=keep_leaked,
    )
