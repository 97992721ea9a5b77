"""PyKEEN's evaluator gives the same metrics: on the same scores, ties included, and on the same embeddings."""

import warnings
from typing import Any

import numpy as np
import pytest

from fedkge.evaluation import rank
from fedkge.graph import Graph
from fedkge.graph.pykeen import to_pykeen
from fedkge.graph.synthetic import synthetic_graph
from fedkge.models import MODELS, Embedding, ModelShape, initial_tables, make_scorer
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions
from tests.evaluation.scorers import TableScorer

pytestmark = pytest.mark.bench

METRICS = {
    "mrr": "inverse_harmonic_mean_rank",
    "mean_rank": "arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
    "hits_at_1": "hits_at_1",
    "hits_at_3": "hits_at_3",
    "hits_at_10": "hits_at_10",
}


def pykeen_metrics(table: np.ndarray, triples: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Feed PyKEEN's evaluator the scores of a table, one triple and side at a time, filtered by hand."""
    torch = pytest.importorskip("torch")
    evaluation: Any = pytest.importorskip("pykeen.evaluation")
    evaluator = evaluation.RankBasedEvaluator(add_defaults=True)
    facts = set(map(tuple, known.tolist()))
    for head, relation, tail in triples.tolist():
        true = torch.tensor([[float(table[head, relation, tail])]])
        for side in ("tail", "head"):
            scores = (table[head, relation] if side == "tail" else table[:, relation, tail]).copy()
            for entity in range(len(scores)):
                other = (head, relation, entity) if side == "tail" else (entity, relation, tail)
                if other in facts and other != (head, relation, tail):
                    scores[entity] = np.nan
            evaluator.process_scores_(
                hrt_batch=torch.tensor([[head, relation, tail]]),
                target=side,
                scores=torch.tensor(scores)[None],
                true_scores=true,
                dense_positive_mask=None,
            )
    result = evaluator.finalize()
    return {
        f"{side}.realistic.{ours}": result.get_metric(f"{side}.realistic.{theirs}")
        for side in ("tail", "head", "both")
        for ours, theirs in METRICS.items()
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "levels"), [(0, 4), (1, 30), (2, 10**6)])
def test_metrics_equal_pykeen(seed: int, levels: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pykeen", reason="needs the bench extra")
    random = np.random.default_rng(seed)
    table = random.integers(0, levels, size=(40, 4, 40)).astype(np.float32)
    known = np.unique(random.integers(0, [40, 4, 40], size=(900, 3)), axis=0).astype(np.int32)
    triples = np.ascontiguousarray(random.permutation(known)[:150])
    ours = rank(TableScorer(table), triples, known, threads=1).metrics()
    theirs = pykeen_metrics(table, triples, known)
    assert ours == pytest.approx(theirs, abs=1e-6)


def trained(model: str, graph: Graph) -> Embedding:
    """A small model after some epochs, so that ranks are neither random nor all one."""
    shape, generator = ModelShape(dimension=16, margin=6.0), np.random.default_rng(5)
    scorer = make_scorer(model, shape)
    tables = initial_tables(scorer, shape, len(graph.entities), len(graph.relations), generator)
    embedding = Embedding(scorer, tables, shape.margin)
    trainer = Trainer(embedding, Negatives(len(graph.entities), 32), TrainingOptions(learning_rate=0.01))
    for _ in range(10):
        trainer.epoch(graph.train, generator)
    return embedding


@pytest.fixture(scope="module")
def graph() -> Graph:
    return synthetic_graph(entities=150, relations=10, triples=3000, seed=3)


def peer() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("benchmarks.peer", reason="needs the bench extra", exc_type=ImportError)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS)
def test_exported_embeddings_rank_alike_in_pykeen(model: str, graph: Graph) -> None:
    """PyKEEN's models hold fedkge's numbers; PyKEEN scores, filters and ranks all by itself."""
    pykeen = peer()
    embedding = trained(model, graph)
    twin = pykeen.as_pykeen(embedding, to_pykeen(graph)["train"])
    _, theirs = pykeen.evaluate(twin, graph.test, np.concatenate([graph.train, graph.valid]), batch_size=16)
    ours = rank(embedding, graph.test, graph.all_triples, threads=1).metrics()
    assert 0.1 < ours["both.realistic.mrr"] < 0.95
    assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS)
def test_scores_equal_pykeen(model: str, graph: Graph) -> None:
    pykeen = peer()
    torch = pytest.importorskip("torch")
    embedding = trained(model, graph)
    twin = pykeen.as_pykeen(embedding, to_pykeen(graph)["train"]).eval()
    with torch.no_grad():
        theirs = twin.score_hrt(torch.as_tensor(graph.test.astype(np.int64))).numpy().ravel()
    np.testing.assert_allclose(embedding.score_triples(graph.test), theirs + embedding.offset, atol=2e-5)
