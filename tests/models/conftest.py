"""Where other tests find the formulas of models."""

from tests.models.formulas import MODEL_CASES, score_twin

__all__ = ["MODEL_CASES", "score_twin"]
