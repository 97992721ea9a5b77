import threading
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError, DataError, NumericalError
from fedkge.evaluation import Ranking, Ranks, evaluate, rank
from fedkge.graph import Graph, Side, Triples, Vocabulary, no_triples
from tests.evaluation.scorers import TableScorer, brute_force


@dataclass(frozen=True)
class Case:
    table: NDArray[np.float32]
    triples: Triples
    known: Triples


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small worlds with many ties, repeated triples and known triples that overlap the ranked ones or not."""
    entities, relations = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = random.integers(0, draw(st.integers(1, 6)), size=(entities, relations, entities)).astype(np.float32)

    def triples(count: int) -> Triples:
        columns = [random.integers(0, high, size=count) for high in (entities, relations, entities)]
        return np.stack(columns, axis=1).astype(np.int32)

    ranked, known = triples(draw(st.integers(1, 30))), triples(draw(st.integers(0, 60)))
    if draw(st.booleans()):
        known = np.concatenate([known, ranked])
    return Case(table, ranked, known)


def as_tuples(ranks: Ranks) -> list[tuple[int, int, int]]:
    columns = (ranks.optimistic.tolist(), ranks.pessimistic.tolist(), ranks.candidates.tolist())
    return list(zip(*columns, strict=True))


def assert_same(one: Ranking, two: Ranking) -> None:
    assert as_tuples(one.tail) == as_tuples(two.tail)
    assert as_tuples(one.head) == as_tuples(two.head)


@settings(deadline=None)
@given(cases())
def test_equals_brute_force(case: Case) -> None:
    ranking = rank(TableScorer(case.table), case.triples, case.known, threads=1)
    assert as_tuples(ranking.tail) == brute_force(case.table, case.triples, case.known, "tail")
    assert as_tuples(ranking.head) == brute_force(case.table, case.triples, case.known, "head")


@settings(deadline=None, max_examples=25)
@given(cases())
def test_threads_and_blocks_do_not_matter(case: Case) -> None:
    scorer = TableScorer(case.table)
    whole = rank(scorer, case.triples, case.known, threads=1)
    assert_same(whole, rank(scorer, case.triples, case.known, threads=2, block_bytes=1))
    assert_same(whole, rank(scorer, case.triples, case.known, threads=1, block_bytes=1))
    assert_same(whole, rank(scorer, case.triples, case.known, threads=None, block_bytes=100))


@settings(deadline=None, max_examples=50)
@given(cases(), st.integers(0, 2**32 - 1))
def test_a_clients_own_candidates(case: Case, seed: int) -> None:
    extra = np.random.default_rng(seed).integers(0, len(case.table), size=2)
    allowed = np.concatenate([case.triples[:, 0], case.triples[:, 2], extra])
    ranking = rank(TableScorer(case.table), case.triples, case.known, candidates=allowed, threads=1)
    chosen = set(allowed.tolist())
    assert as_tuples(ranking.tail) == brute_force(case.table, case.triples, case.known, "tail", chosen)
    assert as_tuples(ranking.head) == brute_force(case.table, case.triples, case.known, "head", chosen)


def test_same_question_is_scored_once() -> None:
    rows: list[int] = []

    @dataclass(frozen=True)
    class Counting(TableScorer):
        def score(self, triples: Triples, side: Side, out: NDArray[np.float32]) -> None:
            rows.append(len(triples))
            super().score(triples, side, out)

    triples = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 2], [0, 0, 1]], dtype=np.int32)
    rank(Counting(np.zeros((3, 1, 3), dtype=np.float32)), triples, triples, threads=1)
    assert sum(rows) == 2 + 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 2])
def test_non_finite_scores_are_an_error_that_says_where(bad: float, threads: int) -> None:
    table = np.zeros((40, 2, 40), dtype=np.float32)
    table[7, 1, 33] = bad
    triples = np.array([[1, 0, 2], [7, 1, 3], [5, 0, 7]], dtype=np.int32)
    with pytest.raises(NumericalError, match=r"tail candidate 33 of triple \(7, 1, 3\) \(head 7, relation 1\)"):
        rank(TableScorer(table), triples, triples, threads=threads, block_bytes=1)


def test_all_nan_never_ranks_first() -> None:
    triples = np.array([[0, 0, 1]], dtype=np.int32)
    with pytest.raises(NumericalError, match="finite"):
        rank(TableScorer(np.full((3, 1, 3), np.nan, dtype=np.float32)), triples, triples, threads=1)


def test_nothing_to_rank_is_an_error() -> None:
    with pytest.raises(DataError, match="expected at least one triple to rank, got none"):
        rank(TableScorer(np.zeros((2, 1, 2), dtype=np.float32)), no_triples(), no_triples())


def test_foreign_ids_and_missing_answers_are_errors() -> None:
    scorer = TableScorer(np.zeros((2, 1, 2), dtype=np.float32))
    triples = np.array([[0, 0, 1]], dtype=np.int32)
    with pytest.raises(DataError, match="entity ids from 0 to 1"):
        rank(scorer, np.array([[0, 0, 2]], dtype=np.int32), triples)
    with pytest.raises(DataError, match="not among the 1 candidates"):
        rank(scorer, triples, triples, candidates=np.array([0]))
    with pytest.raises(DataError, match="candidates"):
        rank(scorer, triples, triples, candidates=np.array([], dtype=np.int64))
    with pytest.raises(ConfigurationError, match="threads"):
        rank(scorer, triples, triples, threads=0)


def test_progress_comes_from_the_calling_thread_and_ends_at_the_total() -> None:
    calls: list[tuple[int, int, bool]] = []

    def progress(done: int, total: int) -> None:
        calls.append((done, total, threading.current_thread() is threading.main_thread()))

    triples = np.array([[i % 5, 0, (i + 1) % 5] for i in range(9)], dtype=np.int32)
    rank(
        TableScorer(np.zeros((5, 1, 5), dtype=np.float32)),
        triples,
        triples,
        threads=2,
        block_bytes=1,
        progress=progress,
    )
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
    assert calls[-1] == (10, 10, True)


def small_graph() -> tuple[Graph, TableScorer]:
    random = np.random.default_rng(5)
    names = Vocabulary(tuple(f"e{i}" for i in range(12)))
    tables = [np.unique(random.integers(0, [11, 3, 11], size=(n, 3)), axis=0).astype(np.int32) for n in (40, 5, 30)]
    tables[2][-1] = [11, 1, 0]
    graph = Graph("small", names, Vocabulary(("r", "s", "t")), *tables)
    return graph, TableScorer(random.integers(0, 9, size=(12, 3, 12)).astype(np.float32))


def test_metric_keys_and_relations() -> None:
    graph, scorer = small_graph()
    ranking = rank(scorer, graph.test, graph.all_triples, threads=1)
    metrics = ranking.metrics()
    assert len(metrics) == 3 * 6
    assert metrics["both.realistic.mrr"] == pytest.approx(
        (metrics["tail.realistic.mrr"] + metrics["head.realistic.mrr"]) / 2
    )
    rows = ranking.by_relation(graph)
    assert [row.triples for row in rows] == sorted((row.triples for row in rows), reverse=True)
    assert sum(row.triples for row in rows) == len(graph.test)
    for name in ("tail", "head", "both"):
        total = sum(row.triples * getattr(row, f"{name}_mrr") for row in rows)
        assert total / len(graph.test) == pytest.approx(metrics[f"{name}.realistic.mrr"])


def test_evaluate_counts_the_unseen_and_puts_the_controls_beside() -> None:
    graph, scorer = small_graph()
    evaluation = evaluate(scorer, graph, threads=1)
    assert evaluation.unseen == 1
    assert evaluation.leaked == len(set(map(tuple, graph.test.tolist())) & set(map(tuple, graph.train.tolist()))) == 4
    assert len(evaluation.ranking) == len(graph.test) - 4
    everything = evaluate(scorer, graph, keep_leaked=True, threads=1)
    assert len(everything.ranking) == len(graph.test)
    assert (everything.leaked, everything.left_out, evaluation.left_out) == (4, 0, 4)
    assert list(evaluation.table("TransE")) == ["TransE", "popularity", "popularity, epsilon 1"]
    seen = evaluate(scorer, graph, seen_only=True, keep_leaked=True, threads=1)
    assert len(seen.ranking) == len(graph.test) - 1
    assert len(evaluate(scorer, graph, sample=4, controls=False, threads=1).ranking) == 4
    again = evaluate(scorer, graph, threads=2)
    assert again.table() == evaluation.table()


def test_evaluate_refuses_an_empty_split_and_a_foreign_model() -> None:
    graph, scorer = small_graph()
    empty = Graph("empty", graph.entities, graph.relations, graph.train)
    with pytest.raises(DataError, match="empty/test"):
        evaluate(scorer, empty)
    with pytest.raises(DataError, match="12 entities"):
        evaluate(TableScorer(np.zeros((3, 1, 3), dtype=np.float32)), graph)
