"""Filtered ranking on both sides, and the popularity control that every utility number stands beside."""

from fedkge.evaluation.candidates import CandidateScorer
from fedkge.evaluation.evaluate import Evaluation, evaluate, popularity_controls
from fedkge.evaluation.evaluations import Evaluations
from fedkge.evaluation.popularity import Popularity
from fedkge.evaluation.ranking import Ranking, RelationMetrics, rank
from fedkge.evaluation.ranks import Ranks, rank_metrics, weighted_metrics

__all__ = [
    "CandidateScorer",
    "Evaluation",
    "Evaluations",
    "Popularity",
    "Ranking",
    "Ranks",
    "RelationMetrics",
    "evaluate",
    "popularity_controls",
    "rank",
    "rank_metrics",
    "weighted_metrics",
]
