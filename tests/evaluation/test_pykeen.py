"""The same scores give the same metrics as PyKEEN's evaluator, ties and filters included."""

import warnings
from typing import Any

import numpy as np
import pytest

from fedkge.evaluation import rank
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
