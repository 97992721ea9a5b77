"""Filtered ranking on both sides, in blocks, on all cores, without the matrix of all scores in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedkge.base.errors import ConfigurationError, DataError, NumericalError
from fedkge.base.machine import available_cores
from fedkge.base.short_repr import short_repr
from fedkge.evaluation.candidates import CandidateScorer
from fedkge.evaluation.counting import count_block
from fedkge.evaluation.queries import Queries, columns, group_queries
from fedkge.evaluation.ranks import Ranks, rank_metrics
from fedkge.graph import RELATION, Graph, Side, Triples

BLOCK_BYTES = 16 * 2**20
"""Size of the buffer of scores that each thread fills again and again."""

BLOCK_ROWS = 1024
"""The most queries per block: a small graph must still give every thread some work."""

SIDES: tuple[Side, Side] = ("tail", "head")

Progress: TypeAlias = Callable[[int, int], None]
"""Called as progress(questions answered, questions in all), from the calling thread."""


@dataclass(frozen=True, slots=True)
class RelationMetrics:
    """How well the triples of one relation are ranked (realistic MRR)."""

    relation: str
    triples: int
    tail_mrr: float
    head_mrr: float
    both_mrr: float


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The ranks of some triples, both sides, in the order of the triples."""

    triples: Triples
    tail: Ranks
    head: Ranks

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def both(self) -> Ranks:
        """Tail ranks, then head ranks: every triple counts twice."""
        return Ranks.concatenate((self.tail, self.head))

    def metrics(self) -> dict[str, float]:
        """Every metric under a key like `both.realistic.mrr` or `tail.realistic.hits_at_10`."""
        sides = {"tail": self.tail, "head": self.head, "both": self.both}
        return {
            f"{side}.realistic.{name}": value
            for side, ranks in sides.items()
            for name, value in rank_metrics(ranks).items()
        }

    def by_relation(self, graph: Graph) -> tuple[RelationMetrics, ...]:
        """One row per relation that occurs, the most frequent first."""
        relations = self.triples[:, RELATION]
        counts = np.bincount(relations, minlength=len(graph.relations))
        tail = np.bincount(relations, weights=1.0 / self.tail.realistic, minlength=len(counts))
        head = np.bincount(relations, weights=1.0 / self.head.realistic, minlength=len(counts))
        order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        return tuple(
            RelationMetrics(
                relation=graph.relations[relation],
                triples=int(counts[relation]),
                tail_mrr=float(tail[relation] / counts[relation]),
                head_mrr=float(head[relation] / counts[relation]),
                both_mrr=float((tail[relation] + head[relation]) / (2 * counts[relation])),
            )
            for relation in order.tolist()
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Where the blocks of one side write their results; no two blocks share a position."""

    greater: NDArray[np.int64]
    equal: NDArray[np.int64]
    candidates: NDArray[np.int64]

    @classmethod
    def empty(cls, size: int) -> _Counts:
        return cls(*(np.zeros(size, dtype=np.int64) for _ in range(3)))

    def ranks(self, order: NDArray[np.int64]) -> Ranks:
        """Back from the order of the groups to the order of the triples."""
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return Ranks.from_counts(self.greater[back], self.equal[back], self.candidates[back])


def rank(
    scorer: CandidateScorer,
    triples: Triples,
    known: Triples,
    *,
    candidates: NDArray[np.integer] | None = None,
    threads: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress | None = None,
) -> Ranking:
    """Rank the true tail and the true head of every triple among all candidates that are not known answers too.

    `known` holds the triples to filter, usually train, valid and test together; a true answer is never filtered.
    `candidates` restricts the choice to some entity ids (all true answers must be among them); without it every
    entity of the scorer is a candidate. The ids are the scorer's own: for a client's shard, the shard's.
    Memory: one buffer of `block_bytes` (at least one row of scores) per thread, twice that with `candidates`.
    The result does not depend on `threads` (None: all cores). BLAS is held at one thread meanwhile.

    Raises NumericalError when a score is not finite, DataError when there is nothing to rank or an id is unknown.

    >>> from fedkge.evaluation.popularity import Popularity
    >>> train = np.array([[0, 0, 2], [1, 0, 2], [2, 0, 1]], dtype=np.int32)
    >>> test = np.array([[0, 0, 1]], dtype=np.int32)
    >>> ranking = rank(Popularity.count(train, entities=3), test, known=np.concatenate([train, test]), threads=1)
    >>> ranking.tail.realistic.tolist(), ranking.tail.candidates.tolist()
    ([1.0], [2])
    """
    entities = scorer.candidates
    _check_ids(triples, entities, "triples to rank")
    _check_ids(known, entities, "known triples")
    if len(triples) == 0:
        raise DataError("expected at least one triple to rank, got none; choose another split")
    workers = _workers(threads)
    chosen = None if candidates is None else np.unique(candidates)
    grouped = [group_queries(triples, known, side, entities) for side in SIDES]
    if chosen is not None:
        grouped = [_restrict(queries, chosen, entities) for queries in grouped]
    counts = [_Counts.empty(len(triples)) for _ in SIDES]
    rows = max(1, min(BLOCK_ROWS, block_bytes // (4 * max(1, entities))))
    blocks = list(_blocks(grouped, rows))
    rows = min(rows, max(len(queries) for queries in grouped))
    buffers: SimpleQueue[NDArray[np.float32]] = SimpleQueue()
    for _ in range(min(workers, len(blocks))):
        buffers.put(np.empty((rows, entities), dtype=np.float32))

    def run(block: tuple[int, int, int]) -> int:
        index, begin, end = block
        buffer = buffers.get()
        try:
            _rank_block(scorer, grouped[index], chosen, counts[index], begin, end, buffer)
        finally:
            buffers.put(buffer)
        return end - begin

    _run_blocks(run, blocks, workers, sum(len(queries) for queries in grouped), progress)
    tail, head = (count.ranks(queries.order) for count, queries in zip(counts, grouped, strict=True))
    return Ranking(triples=triples, tail=tail, head=head)


def _check_ids(triples: Triples, entities: int, what: str) -> None:
    if len(triples) and (triples.min() < 0 or max(triples[:, 0].max(), triples[:, 2].max()) >= entities):
        raise DataError(
            f"{what}: expected entity ids from 0 to {entities - 1}, the scorer's candidates, "
            f"got {triples.min()} to {max(triples[:, 0].max(), triples[:, 2].max())}; use the ids of the scorer's graph"
        )


def _workers(threads: int | None) -> int:
    if threads is None:
        return available_cores()
    if threads < 1:
        raise ConfigurationError(f"threads: expected at least 1, got {threads}")
    return threads


def _restrict(queries: Queries, chosen: NDArray[np.integer], entities: int) -> Queries:
    """The same questions with answers as positions in `chosen`; known answers outside of it need no filter."""
    if len(chosen) == 0 or chosen[0] < 0 or chosen[-1] >= entities:
        raise DataError(f"candidates: expected entity ids from 0 to {entities - 1}, got {chosen[:1]} to {chosen[-1:]}")
    position = np.full(entities, -1, dtype=np.int64)
    position[chosen] = np.arange(len(chosen))
    answers = position[queries.answers]
    if (answers < 0).any():
        missing = int(queries.answers[np.argmin(answers)])
        raise DataError(
            f"candidates: the true {queries.side} {missing} of a triple is not among the {len(chosen)} candidates; "
            f"add it or drop the triple"
        )
    known = position[queries.known]
    kept_before = np.concatenate([[0], np.cumsum(known >= 0)]).astype(np.int64)
    return replace(queries, answers=answers, known=known[known >= 0], known_starts=kept_before[queries.known_starts])


def _blocks(grouped: Sequence[Queries], rows: int) -> Iterator[tuple[int, int, int]]:
    """(side index, first group, end group); how the work is cut never depends on the number of threads."""
    for index, queries in enumerate(grouped):
        for begin in range(0, len(queries), rows):
            yield index, begin, min(begin + rows, len(queries))


def _rank_block(
    scorer: CandidateScorer,
    queries: Queries,
    chosen: NDArray[np.integer] | None,
    counts: _Counts,
    begin: int,
    end: int,
    buffer: NDArray[np.float32],
) -> None:
    scores = buffer[: end - begin]
    scorer.score(queries.triples[begin:end], queries.side, scores)
    if chosen is not None:
        scores = np.take(scores, chosen, axis=1)
    bad = count_block(
        scores,
        begin,
        queries.starts,
        queries.answers,
        queries.known,
        queries.known_starts,
        counts.greater,
        counts.equal,
        counts.candidates,
    )
    if bad >= 0:
        row = scores[bad - begin]
        place = int(np.argmin(np.isfinite(row)))
        candidate = place if chosen is None else int(chosen[place])
        raise NumericalError(_describe(queries, bad, candidate, float(row[place])))


def _describe(queries: Queries, group: int, candidate: int, score: float) -> str:
    anchor, _ = columns(queries.side)
    triple = queries.triples[group].tolist()
    given = "head" if queries.side == "tail" else "tail"
    return (
        f"expected finite scores, got {score} for {queries.side} candidate {candidate} of triple {tuple(triple)} "
        f"({given} {triple[anchor]}, relation {triple[RELATION]}): the embedding has diverged; "
        f"lower the learning rate or check the input vectors"
    )


def _run_blocks(
    run: Callable[[tuple[int, int, int]], int],
    blocks: Sequence[tuple[int, int, int]],
    workers: int,
    total: int,
    progress: Progress | None,
) -> None:
    """Run the blocks; the first failing block, in their order, gives the error."""
    done = 0
    with threadpool_limits(limits=1, user_api="blas"):
        if workers == 1:
            for block in blocks:
                done += run(block)
                if progress is not None:
                    progress(done, total)
            return
        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="rank") as pool:
            for size in pool.map(run, blocks):
                done += size
                if progress is not None:
                    progress(done, total)
